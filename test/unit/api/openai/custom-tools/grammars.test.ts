import { describe, expect, test } from "vitest";
import { customFunctions } from "../../../../../src/api/openai/custom-tools.ts";
import { compileGrammar } from "../../../../../src/grammar/grammar-work.ts";
import { WorkBudget } from "../../../../../src/grammar/schema-errors.ts";
import { toJsonPattern } from "../../../../../src/grammar/text/print-pattern.ts";
import type { ToolGrammar } from "../../../../../src/inference/inference.ts";
import { prepareRequest } from "../../../../../src/inference/prepare-request.ts";
import { longestTurn } from "../../../../support/longest-turn.ts";
import { PATCH, PATCH_GRAMMAR } from "../../../../support/patch-grammar.ts";

type Syntax = "lark" | "regex";

async function convertAll(syntax: Syntax, definitions: readonly string[], name = "tool") {
  const toolGrammars: ToolGrammar[] = [];
  const toFunction = customFunctions(toolGrammars);
  const tools = definitions.map((definition) =>
    toFunction({ name, description: "Works.", grammar: { syntax, definition } }),
  );
  const input = {
    kind: "chat" as const,
    messages: [],
    tools,
    toolChoice: "auto" as const,
    parallelToolCalls: true,
  };
  const request = {
    endpoint: "chat" as const,
    input,
    format: { type: "text" as const },
    sampling: {},
    toolGrammars,
  };
  return await prepareRequest({ ...request, defaults: { sampling: {} } }, async (work) =>
    compileGrammar(work),
  );
}

async function convert(syntax: Syntax, definition: string) {
  const { input, warnings } = await convertAll(syntax, [definition]);
  const tool = input.kind === "chat" ? input.tools[0] : undefined;
  const properties = Object(tool?.parameters?.["properties"]);
  const pattern: unknown = properties.input.pattern;
  return { tool, pattern: typeof pattern === "string" ? pattern : undefined, warnings };
}

/** Checks each text against the tool's JSON Schema and against the engine's grammar. */
async function allows(syntax: Syntax, definition: string): Promise<(text: string) => boolean> {
  const { pattern, warnings } = await convert(syntax, definition);
  expect(warnings).toEqual([]);
  const expression = new RegExp(pattern!, "u");
  const made = new RegExp(toJsonPattern(pattern!, new WorkBudget())!, "u");
  return (text) => {
    const isAllowed = expression.test(text);
    expect(made.test(JSON.stringify(text).slice(1, -1))).toBe(isAllowed);
    return isAllowed;
  };
}

test("tools of the same name keep their own grammars", async () => {
  const { input } = await convertAll("regex", ["x+", "y+"]);
  const [first, second] = input.kind === "chat" ? input.tools : [];
  const patternOf = (tool: typeof first): string =>
    String(Object(Object(tool?.parameters?.["properties"]).input).pattern);
  expect(new RegExp(patternOf(first), "u").test("x")).toBe(true);
  expect(new RegExp(patternOf(first), "u").test("y")).toBe(false);
  expect(new RegExp(patternOf(second), "u").test("y")).toBe(true);
});

describe("a Lark grammar is enforced", () => {
  test("for apply_patch", async () => {
    const isPatch = await allows("lark", PATCH_GRAMMAR);
    expect(isPatch(PATCH)).toBe(true);
    expect(isPatch(PATCH.trimEnd())).toBe(true);
    expect(isPatch("*** Begin Patch\n*** Update File: a\n*** End Patch")).toBe(true);
    expect(isPatch(PATCH.replace("*** Begin Patch\n", ""))).toBe(false);
    expect(isPatch(PATCH.replace("+new", "new"))).toBe(false);
    expect(isPatch("*** Begin Patch\n*** End Patch\n")).toBe(false);
    expect(isPatch("```\n" + PATCH)).toBe(false);
  });

  test.for<[string, string, readonly string[], readonly string[]]>([
    ["texts, with or without case", 'start: "Go" "on"i', ["Goon", "GoON"], ["goon", "Go on"]],
    [
      "special characters",
      String.raw`start: "a.b*\"\\\n\u00e9\x21(|)[]{}^$-/"`,
      ['a.b*"\\\né!(|)[]{}^$-/'],
      ["axb"],
    ],
    ["ranges and counts", 'start: "a".."c" ~ 2 "0".."9"~1..3', ["ab1", "cc123"], ["a1", "abc1", "ab1234"]],
    ["options", 'start: "a" ["b"] ("c" | "d" "e")? "f"+', ["af", "abdeff"], ["abdf", "a"]],
    [
      "rules with modifiers, aliases and comments",
      'start: x | y // or\n?x: "x" -> ex\n!y.2: "y"\n  | "z" # and',
      ["x", "y", "z"],
      ["xy", ""],
    ],
    [
      "terminals of its own and of common",
      'start: NAME "=" (SIGNED_NUMBER | ESCAPED_STRING)\nNAME.1: /[a-z]\\w*/i\n%import common (SIGNED_NUMBER, ESCAPED_STRING)',
      ["a=1", "Ab=-1.5e3", 'x="a\\"b"', "x=.5"],
      ["1=1", "a=", "a=-"],
    ],
    [
      "what is ignored between terminals, but not in them",
      'start: INT ("+" INT)*\n%import common.INT\n%import common.WS -> BLANK\n%ignore BLANK',
      ["1+2", " 1 + 22\n+ 3 "],
      ["1 2", "+ 1"],
    ],
    ["regular expressions with flags", "start: /a.c/s /x|y/i", ["a\ncx", "abcY"], ["acx"]],
    ["complements, with quotes and tabs", "start: /[^a-c\\n]+/ /\\S\\D\\W/", ['"\t\\é x"!'], ["abc", 'x"1!']],
  ])("%s", async ([, grammar, good, bad]) => {
    const isAllowed = await allows("lark", grammar);
    for (const text of good) expect([text, isAllowed(text)]).toEqual([text, true]);
    for (const text of bad) expect([text, isAllowed(text)]).toEqual([text, false]);
  });

  test("and described to the model", async () => {
    expect((await convert("lark", 'start: "a"')).tool).toEqual({
      name: "tool",
      description: 'Works.\n\nThe input has to match this Lark grammar:\nstart: "a"',
      parameters: {
        type: "object",
        properties: { input: { type: "string", description: expect.any(String), pattern: "^(?:a)$" } },
        required: ["input"],
        additionalProperties: false,
      },
    });
  });
});

describe("a recursive grammar is described to the model, with a warning that explains why it is not enforced", () => {
  test.for<[string, string]>([
    ['start: value\nvalue: "[" value* "]" | "x"', "is recursive: value contains itself"],
    ["", "does not define start"],
    ["start: missing", "does not define missing"],
    ['start: "a', "has something in line 1 that is not understood"],
    ['start: list{"a"}\nlist{x}: x', "has something in line 1"],
    ['start: ("a"', "has a group without its )"],
    ["start: A\n%import other.A", "imports something else"],
    ["start: A\n%import common.A", "imports A, which is not known"],
    ["%declare A\nstart: A", "has %declare where a definition should begin"],
    ["start: A\nA: b\nb: /x/", "has the rule b in a terminal"],
    ["start: /(?=x)x/", "has a lookaround"],
    [`start: ${"(".repeat(60)}"a"${")".repeat(60)}`, "is nested too deeply"],
    [
      [
        "start: a0",
        ...Array.from({ length: 20 }, (_, at) => `a${at}: a${at + 1} a${at + 1}`),
        'a20: "a"',
      ].join("\n"),
      "is too large",
    ],
  ])("%j", async ([definition, why]) => {
    const { tool, pattern, warnings } = await convert("lark", definition);
    expect(pattern).toBeUndefined();
    expect(tool?.description).toContain(definition);
    expect(warnings).toEqual([expect.stringContaining(`The grammar of the tool "tool" ${why}`)]);
  });
});

describe("a regular expression", () => {
  test.for<[string, readonly string[], readonly string[]]>([
    ["\\d{2}:\\d{2}", ["12:30"], ["1:30", "x12:30", "12:30 "]],
    ["^(?P<verb>get|put) [^ ]+$", ['get "x"', "put a\\b"], ["get ", "del x"]],
    ["^a|b$", ["a", "b"], ["ab", "ax"]],
    ["(?i)select .*?", ["SELECT *", "select "], ["select a\nb"]],
    ["[\\w.-]+@[]a-z]{,2}", ["a.b-c@x", "a@]"], ["@x", "a@xyz"]],
    ["\\A\\x{1F642}\\u0041\\.\\Z", ["🙂A."], ["🙂A!"]],
  ])("%s is enforced for the whole input", async ([definition, good, bad]) => {
    const isAllowed = await allows("regex", definition);
    for (const text of good) expect([text, isAllowed(text)]).toEqual([text, true]);
    for (const text of bad) expect([text, isAllowed(text)]).toEqual([text, false]);
  });

  test.for([
    "a{10000}",
    "a\\b",
    "(?<!a)b",
    "(a)\\1",
    "\\p{L}",
    "a++",
    "(?x)a",
    "[z-a]",
    "(a",
    "a)",
    "[a",
    "(a$)b",
    "*",
  ])("%s is only described to the model", async (definition) => {
    const { pattern, warnings } = await convert("regex", definition);
    expect({ pattern, warnings }).toEqual({ pattern: undefined, warnings: [expect.any(String)] });
  });
});

test("huge grammars are not converted and do not block the daemon", async () => {
  let warnings: readonly string[] = [];
  const twice = Array.from({ length: 30 }, (_, at) => `a${at}: ${`a${at + 1} `.repeat(20)}`).join("\n");
  const definitions = [
    `start: a0\n${twice}\na30: "a"`,
    `start: ${'"a" '.repeat(4000)}`,
    `start: /${"(a{1,9}|".repeat(40)}${"b".repeat(4000)}/`,
    "x".repeat(1_000_000),
    'start: "short"',
  ];
  const longest = await longestTurn(async () => {
    ({ warnings = [] } = await convertAll("lark", definitions, "n".repeat(999)));
  });
  expect(longest).toBeLessThan(1000);
  expect(warnings).toMatchObject([
    expect.stringContaining("is too large when its rules are written out"),
    expect.stringContaining("has a group that is not closed"),
    expect.stringContaining("is too long"),
    expect.stringContaining("is too long"),
  ]);
  expect(warnings.every((warning) => warning.length < 300)).toBe(true);
});
