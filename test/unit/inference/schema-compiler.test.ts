import { describe, expect, test } from "vitest";
import { grammarMaker } from "../../../src/inference/schema-compiler.ts";
import { type GrammarWork, made, makeGrammar, makeQuickly } from "../../../src/grammar/grammar-work.ts";
import { TextGrammarError } from "../../../src/grammar/text-grammar.ts";
import { REAL_SCHEMAS } from "../../conformance/real-schemas.ts";
import { longestTurn } from "../../support/longest-turn.ts";

const NEVER = new AbortController().signal;

const properties = (count: number, of: (at: number) => unknown): object =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, of(at)]));

/** Each takes a tenth of a second of a processor, or much more. */
const LARGE: readonly [string, GrammarWork][] = [
  ["thousands of properties", { kind: "schema", schema: { properties: properties(9000, () => ({})) } }],
  [
    "patterns that are read together",
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
      given: Array.from({ length: 4000 }, (_, at) => ((at * 2654435761) >>> 0).toString(36).repeat(2)),
    },
  ],
  [
    "a pattern with many courses",
    { kind: "texts", language: "regex", given: "(?=.*[a-z]{20})(?=.*[0-9]{8})(a|b|[0-9])*a(a|b){12}" },
  ],
  [
    "rules of Lark",
    {
      kind: "texts",
      language: "lark",
      given: Array.from(
        { length: 500 },
        (_, at) => `${at === 0 ? "start" : `r${at}`}: /[a-z]{1,20}x${at}/`,
      ).join("\n"),
    },
  ],
  [
    "what llama.cpp leaves out of a long pattern",
    { kind: "llama", schemas: [{ type: "string", pattern: `^${"(a|[b-z])?".repeat(20_000)}$` }] },
  ],
  [
    "the check of an answer in which many values meet many subschemas",
    {
      kind: "check",
      by: {
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
      by: { kind: "schema", schema: { items: { pattern: "(a|b)*a(a|b){12}" }, uniqueItems: true } },
      text: '["a"]',
    },
  ],
  [
    "a long answer that goes on",
    { kind: "rest", grammar: 'root ::= ("a" | "a" root)*', beginning: "a".repeat(5000) },
  ],
];

describe("a grammar", () => {
  test("of a schema as agents send them is mostly made at once, and then as it would be made with more time", () => {
    const works = Object.values(REAL_SCHEMAS).map((schema): GrammarWork => ({ kind: "schema", schema }));
    const quick = works.filter((work) => makeQuickly(work) !== undefined);
    expect(quick.length).toBeGreaterThan(works.length / 2);
    for (const work of quick) expect(makeQuickly(work)).toEqual(makeGrammar(work));
  });

  test.each(LARGE)("that takes long is made elsewhere: %s", async (_what, work) => {
    const sent: GrammarWork[] = [];
    const make = grammarMaker(async (each) => {
      sent.push(each);
      return { kind: "made", grammar: "", unenforced: [] };
    }, NEVER);
    const turn = await longestTurn(async () => await make(work));
    expect(sent).toEqual([work]);
    // A few milliseconds; collections of garbage that other tests have left count as well.
    expect(turn).toBeLessThan(200);
  });

  test("that cannot be said is told, wherever that is found out", async () => {
    const works: GrammarWork[] = [
      { kind: "texts", language: "regex", given: String.raw`(a)\1` },
      { kind: "texts", language: "lark", given: 'begin: "x"' },
    ];
    for (const work of works) {
      expect(makeQuickly(work)).toEqual(makeGrammar(work));
      expect(() => made(makeGrammar(work))).toThrow(TextGrammarError);
    }
  });

  test("is made here where there is no elsewhere, as in a page", async () => {
    const make = grammarMaker(undefined, NEVER);
    const work: GrammarWork = {
      kind: "schema",
      schema: { enum: Array.from({ length: 1500 }, (_, at) => `v${at}`) },
    };
    expect(await make(work)).toEqual(makeGrammar(work));
  });
});
