import { describe, expect, test } from "vitest";
import { toLlamaSchema } from "../../../src/grammar/to-llama-schema.ts";
import { compileGrammar } from "../../../src/grammar/grammar-work.ts";
import { WorkBudget } from "../../../src/grammar/schema-errors.ts";
import { textPattern } from "../../../src/grammar/text-grammar.ts";
import { toJsonPattern } from "../../../src/grammar/text/print-pattern.ts";
import { longestTurn } from "../../support/longest-turn.ts";

const many = (count: number, of: (at: number) => unknown): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, of(at)]));
const sparse = String.fromCodePoint(...Array.from({ length: 8000 }, (_, at) => 0x100 + 2 * at));

/** Inputs that once took more than a second, because of superlinear work. */
const LARGE: readonly [string, () => unknown][] = [
  [
    "references to thousands of subschemas",
    () =>
      toLlamaSchema({
        $defs: many(6000, () => ({ type: "string" })),
        properties: many(6000, (at) => ({ $ref: `#/$defs/p${at}` })),
      }),
  ],
  [
    "a chain of thousands of references",
    () =>
      compileGrammar({
        kind: "schema",
        schema: { $defs: many(6000, (at) => ({ $ref: `#/$defs/p${at + 1}` })), $ref: "#/$defs/p0" },
      }),
  ],
  [
    "the complement of thousands of characters in a pattern",
    () => toJsonPattern(`^[^${sparse}]$`, new WorkBudget()),
  ],
  [
    "the same in an expression",
    () => compileGrammar({ kind: "pattern", language: "regex", source: `[^${sparse}]` }),
  ],
];

describe("a large schema is processed in linear time", () => {
  test.each(LARGE)("%s", async (_what, work) => {
    expect(await longestTurn(async () => void work())).toBeLessThan(600);
  });

  test("a schema that would exhaust the stack is refused", () => {
    const chain = { $defs: many(9000, (at) => ({ $ref: `#/$defs/p${at + 1}` })), $ref: "#/$defs/p0" };
    expect(
      compileGrammar({ kind: "check", against: { kind: "schema", schema: chain }, text: "1" }),
    ).toMatchObject({
      kind: "unsayable",
    });
    const rules = Array.from({ length: 1800 }, (_, at) => `${at === 0 ? "start" : `r${at}`}: "a" r${at + 1}`);
    for (const lines of [rules, rules.map((line) => line.toUpperCase().replace("START", "start"))])
      expect(() => textPattern("lark", lines.join("\n"))).toThrow(/nested too deeply/);
  });

  test("a long name is shortened in the paths of its subschemas", () => {
    const { dropped } = toLlamaSchema({
      properties: { ["x".repeat(100_000)]: { properties: many(3000, () => ({ not: {} })) } },
    });
    expect(dropped).toHaveLength(3000);
    expect(Math.max(...dropped.map(({ path }) => path.length))).toBeLessThan(500);
    expect(dropped[0]?.path).toMatch(/^properties\.x+\.properties\.p0$/);
  });

  test("a path of many levels is shortened", () => {
    let schema: object = { not: {} };
    for (let level = 0; level < 60; level += 1) schema = { properties: { ["y".repeat(90)]: schema } };
    const [lowest] = toLlamaSchema(schema).dropped;
    expect(lowest).toMatchObject({
      keyword: "not",
      path: expect.stringMatching(/^properties\.y+.*….*\.y{90}$/),
    });
    expect(lowest?.path.length).toBeLessThan(500);
  });
});
