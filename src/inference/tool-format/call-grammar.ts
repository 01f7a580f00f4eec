import type { ToolDefinition } from "../../engine/protocol/generation.ts";
import type { ToolFormat } from "../../models/model.ts";

/** JSON in GBNF, as RFC 8259 has it; whitespace is bounded so that a weak model cannot fill the answer with it. */
const JSON_RULES = String.raw`
object ::= "{" ws (pair ("," ws pair)*)? "}" ws
pair ::= string ":" ws value
array ::= "[" ws (value ("," ws value)*)? "]" ws
value ::= object | array | string | number | ("true" | "false" | "null") ws
string ::= "\"" ([^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" ws
number ::= "-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,15})? ([eE] [-+]? [0-9]{1,3})? ws
ws ::= [ \n]{0,8}
`.trim();

/**
 * A grammar that permits nothing but calls of the given tools in the model's TOOLFORMAT: what makes
 * `tool_choice` required, or a named function, binding.
 */
export function callGrammar(tools: readonly ToolDefinition[], format: ToolFormat, parallel: boolean): string {
  const names = tools.map(({ name }) => literal(JSON.stringify(name))).join(" | ");
  // Without an end tag a second call could not be told from the first.
  const many = parallel && format.callEnd !== "";
  return [
    many ? `root ::= call (ws call)*` : `root ::= call`,
    `call ::= ${literal(`${format.callStart}{"name": `)} name ${literal(', "arguments": ')} object ${literal(`}${format.callEnd}`)}`,
    `name ::= ${names}`,
    JSON_RULES,
  ].join("\n");
}

/** A GBNF literal; an empty one is valid. */
function literal(text: string): string {
  const escaped = text
    .replaceAll("\\", "\\\\")
    .replaceAll('"', String.raw`\"`)
    .replaceAll("\n", String.raw`\n`);
  return `"${escaped}"`;
}
