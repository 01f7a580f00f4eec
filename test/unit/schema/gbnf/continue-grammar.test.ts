import { describe, expect, test } from "vitest";
import { continueGrammar } from "../../../../src/schema/gbnf/continue-grammar.ts";

const OBJECT = `root ::= object # the answer
object ::= "{" ws ( pair ("," ws pair)* )? "}" ws
pair ::= string ":" ws value
value ::= object | string | [0-9]+ | "true" | "false"
string ::= "\\"" [^"\\\\\\n]{0,20} "\\"" ws
ws ::= [ \\t\\n]*
`;

/** Every text that a grammar without endless repetitions allows, told by continuing it to the end. */
function canEnd(grammar: string, text: string): boolean {
  const rest = continueGrammar(grammar, text);
  return rest !== undefined && /^root ::= (?:.* \| )?""(?: \||\n)/.test(rest);
}

describe("the rest of a grammar behind a beginning", () => {
  test.each(["", "{", '{"a', '{"a": ', '{"a": {"b": 1', '{"a": {"b": 12}, "c": tr'])(
    "%j is what may follow it",
    (beginning) => {
      const whole = '{"a": {"b": 12}, "c": true}';
      const rest = continueGrammar(OBJECT, beginning);
      expect(rest).toMatch(/^root ::= /);
      expect(canEnd(rest ?? "", whole.slice(beginning.length))).toBe(true);
    },
  );

  test.each(["I am", "}", '{"a": {"b" 1', "{,", '{"a": "1234567890123456789012'])(
    "is nothing behind %j, with which no text begins",
    (beginning) => expect(continueGrammar(OBJECT, beginning)).toBeUndefined(),
  );

  test("is the end behind a whole text", () => {
    expect(continueGrammar('root ::= "ab"', "ab")).toMatch(/^root ::= ""\n/);
    expect(canEnd(OBJECT, '{"a": 1}')).toBe(true);
    expect(canEnd(OBJECT, '{"a": 1')).toBe(false);
  });

  test("is itself a grammar, which can be continued", () => {
    let rest: string | undefined = OBJECT;
    for (const character of '{"é😀": "x"}') rest = rest && continueGrammar(rest, character);
    expect(canEnd(rest ?? "", "")).toBe(true);
  });

  test("counts what is left of a repetition", () => {
    const grammar = "root ::= ([a-c] [0-9]?){2,3}";
    expect(canEnd(grammar, "a")).toBe(false);
    expect(canEnd(grammar, "a1b")).toBe(true);
    expect(canEnd(grammar, "abc9")).toBe(true);
    expect(continueGrammar(grammar, "abca")).toBeUndefined();
  });

  test("follows escapes, classes and what a class excludes", () => {
    const grammar = String.raw`root ::= "\x41\u00e9\U0001F600\"\\" [\]a-] [^\n] .`;
    expect(canEnd(grammar, 'Aé😀"\\]zz')).toBe(true);
    expect(continueGrammar(grammar, 'Aé😀"\\a\n')).toBeUndefined();
  });

  test("has tokens as they are, but cannot follow text through them", () => {
    const grammar = 'root ::= "a" <[42]> !<think>';
    expect(continueGrammar(grammar, "a")).toContain("<[42]> !<think>");
    expect(continueGrammar(grammar, "ab")).toBeUndefined();
  });
});

describe("what cannot be followed is left alone, at once", () => {
  test.each([
    ["no root", 'value ::= "a"'],
    ["an unknown rule", "root ::= nothing"],
    ["an open group", 'root ::= ("a"'],
    ["an open text", 'root ::= "a'],
    ["a bad escape", 'root ::= "\\q"'],
    ["nothing at all", ""],
    ["groups without end", `root ::= ${"(".repeat(50_000)}`],
    ["a rule that begins with itself", 'root ::= root "a" | "b"'],
    ["too many ways", `root ::= ${'("a" | "a" "a")* '.repeat(300)}`],
    ["repetitions in repetitions", "root ::= ((((([a]{0,999}){0,999}){0,999}){0,999}){0,999}){0,999} [b]"],
  ])("%s", (_, grammar) => {
    const rest = continueGrammar(grammar, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    expect(rest === undefined || (rest.startsWith("root ::= ") && rest.length < 1_000_000)).toBe(true);
  });
});
