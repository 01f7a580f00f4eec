import { describe, expect, test } from "vitest";
import { type CompileGrammar, grammarCompiler } from "../../../src/inference/schema-compiler.ts";
import { type GrammarWork, compileGrammar, compileIfQuick } from "../../../src/grammar/grammar-work.ts";
import { prepareRequest } from "../../../src/inference/prepare-request.ts";
import { REAL_SCHEMAS } from "../../conformance/real-schemas.ts";
import { longestTurn } from "../../support/longest-turn.ts";

const NEVER = new AbortController().signal;

const properties = (count: number, of: (at: number) => unknown): object =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, of(at)]));

/** Inputs that take at least a tenth of a second of CPU time each. */
const LARGE: readonly [string, GrammarWork][] = [
  ["thousands of properties", { kind: "schema", schema: { properties: properties(9000, () => ({})) } }],
  [
    "patterns that are intersected",
    {
      kind: "schema",
      schema: { oneOf: Array.from({ length: 300 }, (_, at) => ({ type: "string", pattern: `^a.{${at}}b` })) },
    },
  ],
  [
    "multiples",
    {
      kind: "schema",
      schema: { properties: properties(100, (at) => ({ type: "integer", multipleOf: at + 7 })) },
    },
  ],
  [
    "thousands of texts",
    {
      kind: "texts",
      language: "choice",
      source: Array.from({ length: 4000 }, (_, at) => ((at * 2654435761) >>> 0).toString(36).repeat(2)),
    },
  ],
  [
    "a pattern with many alternatives",
    { kind: "texts", language: "regex", source: "(?=.*[a-z]{20})(?=.*[0-9]{8})(a|b|[0-9])*a(a|b){12}" },
  ],
  ["a long grammar", { kind: "texts", language: "gbnf", source: `root ::= ${"[a] ".repeat(60_000)}` }],
  [
    "rules of Lark",
    {
      kind: "texts",
      language: "lark",
      source: Array.from(
        { length: 500 },
        (_, at) => `${at === 0 ? "start" : `r${at}`}: /[a-z]{1,20}x${at}/`,
      ).join("\n"),
    },
  ],
  [
    "the keywords that llama.cpp drops from a long pattern",
    { kind: "llama", schemas: [{ type: "string", pattern: `^${"(a|[b-z])?".repeat(20_000)}$` }] },
  ],
  [
    "the check of an answer with many values against many subschemas",
    {
      kind: "check",
      against: {
        kind: "schema",
        schema: { items: { anyOf: Array.from({ length: 500 }, (_, at) => ({ const: at })) } },
      },
      text: JSON.stringify(Array.from({ length: 500 }, (_, at) => at)),
    },
  ],
  [
    "the check of an answer by patterns",
    {
      kind: "check",
      against: { kind: "schema", schema: { items: { pattern: "(a|b)*a(a|b){12}" }, uniqueItems: true } },
      text: '["a"]',
    },
  ],
  [
    "a long answer that is continued",
    { kind: "rest", grammar: 'root ::= ("a" | "a" root)*', beginning: "a".repeat(5000) },
  ],
];

const RUN = {
  endpoint: "chat",
  input: { kind: "prompt", prompt: "hi" },
  sampling: {},
  defaults: { sampling: {} },
} as const;

describe("a grammar", () => {
  test("of a request is compiled once for all choices", async () => {
    let compiled = 0;
    const format = { type: "texts", language: "gbnf", source: "root ::= [a]", param: "grammar" } as const;
    const compile: CompileGrammar = async (work) => {
      compiled += 1;
      return compileGrammar(work);
    };
    for (let choice = 0; choice < 4; choice += 1)
      expect((await prepareRequest({ ...RUN, format }, compile)).format).toEqual({
        type: "grammar",
        grammar: format.source,
      });
    expect(compiled).toBe(1);
  });

  test("for schemas of agents is mostly compiled at once, with the same result as without a time limit", () => {
    const works = Object.values(REAL_SCHEMAS).map((schema): GrammarWork => ({ kind: "schema", schema }));
    const quick = works.filter((work) => compileIfQuick(work) !== undefined);
    expect(quick.length).toBeGreaterThan(works.length / 2);
    for (const work of quick) expect(compileIfQuick(work)).toEqual(compileGrammar(work));
  });

  test.each(LARGE)("is compiled off-thread if it takes long: %s", async (_what, work) => {
    const sent: GrammarWork[] = [];
    const make = grammarCompiler(async (each) => {
      sent.push(each);
      return { kind: "made", grammar: "", ignored: [], checked: [] };
    }, NEVER);
    const turn = await longestTurn(async () => await make(work));
    expect(sent).toEqual([work]);
    // A few milliseconds, with an allowance for garbage collection.
    expect(turn).toBeLessThan(200);
  });

  test("that cannot be expressed is an error, on either thread", async () => {
    const works: GrammarWork[] = [
      { kind: "texts", language: "regex", source: String.raw`(a)\1` },
      { kind: "texts", language: "lark", source: 'begin: "x"' },
    ];
    for (const work of works) {
      expect(compileIfQuick(work)).toEqual(compileGrammar(work));
      expect(compileGrammar(work)).toMatchObject({ kind: "unsayable", message: expect.any(String) });
    }
  });

  test("is compiled on this thread if there is no other, as in a page", async () => {
    const make = grammarCompiler(undefined, NEVER);
    const work: GrammarWork = {
      kind: "schema",
      schema: { enum: Array.from({ length: 1500 }, (_, at) => `v${at}`) },
    };
    expect(await make(work)).toEqual(compileGrammar(work));
  });
});
