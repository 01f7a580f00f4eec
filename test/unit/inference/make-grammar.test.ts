import { describe, expect, test } from "vitest";
import { grammarMaker } from "../../../src/inference/make-grammar.ts";
import { type GrammarWork, makeGrammar, makeQuickly } from "../../../src/schema/grammar-work.ts";
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
    expect(turn).toBeLessThan(60);
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
