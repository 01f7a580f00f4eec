import { describe, expect, it } from "vitest";
import { engineSpec, SHIPPED_MODEL } from "./engine-fixture.ts";
import { FOUR_BEGINNINGS } from "./stock-comparisons.ts";
import { decodeLogprobs, encodeLogprobs, TokenTable } from "./stock-record-encoding.ts";
import { stockAnswers } from "./stock-record.ts";

describe("the record of the stock engine", () => {
  const spec = engineSpec(SHIPPED_MODEL, FOUR_BEGINNINGS.settings);

  it("answers for the models and questions that it is of", () => {
    const { lines, said } = stockAnswers(FOUR_BEGINNINGS, spec);
    expect(lines.map(({ text }) => text)).toEqual(
      said.map((line) => line.map(({ token }) => token).join("")),
    );
  });

  it.each([
    ["another model", FOUR_BEGINNINGS, { ...spec, modelFiles: [import.meta.filename] }],
    ["other settings", FOUR_BEGINNINGS, { ...spec, contextSize: 511 }],
    ["other questions", { ...FOUR_BEGINNINGS, lines: FOUR_BEGINNINGS.lines.slice(1) }, spec],
    ["one that it lacks", { ...FOUR_BEGINNINGS, name: "nothing of the kind" }, spec],
  ])("does not answer for %s, and says what to do", (_, comparison, asked) => {
    expect(() => stockAnswers(comparison, asked)).toThrow("Run `node scripts/test/record-stock.ts`");
  });

  it("holds log-probabilities as they were", () => {
    const top = Array.from({ length: 20 }, (_, index) => alternative(index));
    const said = [
      { ...alternative(7), top },
      { ...alternative(20), top },
    ];
    const table = new TokenTable([["another", null]]);
    const encoded = encodeLogprobs(said, table);
    expect(decodeLogprobs(encoded, table.tokens)).toEqual(said);
    expect(table.tokens).toHaveLength(22);
  });
});

function alternative(seed: number): { id: number; token: string; bytes: number[] | null; logprob: number } {
  return { id: -1, token: `t${seed}`, bytes: seed % 2 ? [seed] : null, logprob: Math.fround(-seed / 3) };
}
