import { modelfileError } from "../parse-instructions.ts";
import { cutAfterResponse, fieldsOf, type GoNode, parseGoTemplate, setsVariables } from "./go-template.ts";
import { type JinjaValue, nodesToJinja, output, statement, VARIABLES } from "./nodes-to-jinja.ts";
import { TemplateProblem } from "./go-expression.ts";

const HINT = "A TEMPLATE may also be a chat template in Jinja, as in the model's own file";

/**
 * Converts the template of a TEMPLATE directive to Jinja: a Go template is translated, a Jinja template is unchanged.
 * @param line - line of the Modelfile at which the template begins
 * @throws ServiceError invalid_modelfile
 */
export function chatTemplate(template: string, line: number): string {
  if (isJinja(template)) return template;
  try {
    return oneTagPerLine(translate(parseGoTemplate(template)));
  } catch (error) {
    if (!(error instanceof TemplateProblem)) throw error;
    const linesBefore = template.slice(0, error.position).split("\n").length - 1;
    throw modelfileError(line + linesBefore, `TEMPLATE: ${error.message}. ${HINT}.`, error);
  }
}

/**
 * Action of a Go template that is no Jinja: a capitalized field, a variable with a dollar sign, a keyword in `{{ }}`.
 */
const GO_ACTION = /\{\{-?\s*(?:(?:if|range|with|else|end)\b|\.[A-Z]|\$)/;
/** Variable with the conversation in Jinja. */
const MESSAGES = /(?<![.\w])messages\b/;

/** True for a template with a Jinja statement, or with an expression that prints the conversation. */
function isJinja(template: string): boolean {
  if (GO_ACTION.test(template)) return false;
  return template.includes("{%") || template.split("}").some(showsMessages);
}

/** @param text between braces that close */
function showsMessages(text: string): boolean {
  const open = text.indexOf("{{");
  return open >= 0 && MESSAGES.test(text.slice(open));
}

function translate(nodes: readonly GoNode[]): string {
  const fields = new Set(fieldsOf(nodes));
  if (fields.has("Messages")) return translateMessages(nodes, fields.has("System"));
  if (fields.has("Prompt")) return translateTurns(nodes);
  throw new TemplateProblem(
    0,
    "it shows neither {{ .Prompt }} nor {{ .Messages }}, so the model would never see a question",
  );
}

/**
 * Splits tags into lines for readability. They trim the text between them, and their strings have no adjacent braces.
 */
function oneTagPerLine(jinja: string): string {
  return jinja.replaceAll("}{", "}\n{");
}

/** Fields that both kinds of templates have. */
const COMMON_FIELDS: readonly (readonly [string, JinjaValue])[] = [
  ["Tools", { code: "tools", prints: "json" }],
  ["Think", { code: "(enable_thinking is defined and enable_thinking)", prints: "plain" }],
  ["IsThinkSet", { code: "(enable_thinking is defined)", prints: "plain" }],
  // Only for fill-in-the-middle, so empty in chats.
  ["Suffix", { code: '("")', prints: "plain" }],
];

const NOTHING: JinjaValue = { code: '("")', prints: "plain" };

/** Translates a template that loops over .Messages. If it also prints .System, .Messages excludes system messages. */
function translateMessages(nodes: readonly GoNode[], showsSystem: boolean): string {
  const messages = showsSystem ? "chat.messages" : "messages";
  const root = new Map<string, JinjaValue>([
    ...COMMON_FIELDS,
    ["Messages", { code: messages, prints: "json" }],
    ["System", { code: "chat.system", prints: "text" }],
    ["Prompt", NOTHING],
    ["Response", NOTHING],
  ]);
  return (showsSystem ? SEPARATE_SYSTEM : "") + withVariables(nodes, root);
}

const SEPARATE_SYSTEM = [
  statement('set chat = namespace(system="", messages=[])'),
  statement("for message in messages"),
  statement('if message.role == "system"'),
  statement(appendTo("system")),
  statement("else"),
  statement("set chat.messages = chat.messages + [message]"),
  statement("endif"),
  statement("endfor"),
].join("");

/**
 * Translates a template of one turn, with .System, .Prompt and .Response. The result applies it to each turn of the
 * conversation, and to the last one only up to .Response, which the model generates. Without .Response, the answer
 * comes at the end, followed by an empty line. Consecutive messages of the same role are joined, with an empty line
 * between them.
 */
function translateTurns(nodes: readonly GoNode[]): string {
  const withResponse: readonly GoNode[] = fieldsOf(nodes).includes("Response")
    ? nodes
    : [...nodes, RESPONSE, { kind: "text", text: "\n\n" }];
  const root = new Map<string, JinjaValue>([
    ...COMMON_FIELDS,
    ["System", { code: "system", prints: "text" }],
    ["Prompt", { code: "prompt", prints: "text" }],
    ["Response", { code: "response", prints: "text" }],
  ]);
  const macro = (name: string, body: readonly GoNode[]): string =>
    statement(`macro ${name}(system, prompt, response)`) + withVariables(body, root) + statement("endmacro");
  const closeTurn =
    turn("whole_turn") +
    statement('set chat.system = ""') +
    statement('set chat.prompt = ""') +
    statement('set chat.response = ""');
  return [
    macro("whole_turn", withResponse),
    macro("open_turn", cutAfterResponse(withResponse)),
    statement('set chat = namespace(system="", prompt="", response="")'),
    statement("for message in messages"),
    statement('if message.role == "system"'),
    statement("if chat.prompt or chat.response") + closeTurn + statement("endif"),
    statement(appendTo("system")),
    statement('elif message.role == "assistant"'),
    statement(appendTo("response")),
    statement("else"),
    statement("if chat.response") + closeTurn + statement("endif"),
    statement(appendTo("prompt")),
    statement("endif"),
    statement("endfor"),
    statement("if chat.response and not add_generation_prompt"),
    turn("whole_turn"),
    statement("else"),
    turn("open_turn"),
    statement("endif"),
  ].join("");
}

const RESPONSE: GoNode = {
  kind: "print",
  value: { kind: "access", base: { kind: "dot" }, path: ["Response"] },
  position: 0,
};

function turn(macro: string): string {
  return output(`${macro}(chat.system, chat.prompt, chat.response)`);
}

function appendTo(part: string): string {
  return `set chat.${part} = chat.${part} + ("\\n\\n" if chat.${part} else "") + (message.content or "")`;
}

function withVariables(nodes: readonly GoNode[], root: ReadonlyMap<string, JinjaValue>): string {
  const declaration = setsVariables(nodes) ? statement(`set ${VARIABLES} = namespace()`) : "";
  return declaration + nodesToJinja(nodes, { root, dot: undefined, variables: new Map() });
}
