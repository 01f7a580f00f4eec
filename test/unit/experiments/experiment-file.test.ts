import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  experimentJsonSchema,
  fromFragment,
  parseExperiment,
  printExperiment,
  toFragment,
} from "../../../src/experiments/experiments.ts";
import { EXPERIMENT, RESULT } from "./sample-experiment.ts";

describe("an experiment file", () => {
  test("is parsed to the experiment that it was written from", () => {
    expect(parseExperiment(printExperiment(EXPERIMENT))).toEqual(EXPERIMENT);
  });

  test("has one line per token, so that files can be compared with diff", () => {
    const lines = printExperiment(EXPERIMENT).split("\n");
    for (const token of RESULT.tokens) {
      expect(lines.filter((line) => line.includes(JSON.stringify(token)))).toHaveLength(1);
    }
  });

  test("preserves text that looks like a replacement pattern of String.replace()", () => {
    const odd = { ...EXPERIMENT, result: { ...RESULT, text: "$& $1 $$" } };
    expect(parseExperiment(printExperiment(odd))).toEqual(odd);
  });

  test("may have no result yet, or one without tokens", () => {
    const { result: _, ...planned } = EXPERIMENT;
    expect(parseExperiment(printExperiment(planned))).toEqual(planned);
    const empty = { ...EXPERIMENT, result: { ...RESULT, tokens: [] } };
    expect(parseExperiment(printExperiment(empty))).toEqual(empty);
  });

  test.each([
    ["text that is not JSON", "{", /not JSON/],
    ["another version", JSON.stringify({ ...EXPERIMENT, experiment: 2 }), /experiment: /],
    ["a field that does not exist", JSON.stringify({ ...EXPERIMENT, modle: {} }), /modle/],
    [
      "an invalid hash",
      JSON.stringify({ ...EXPERIMENT, model: { name: "m", files: [{ role: "model", sha256: "abc" }] } }),
      /model\.files\.0\.sha256: must be 64 hexadecimal digits/,
    ],
    ["a list", "[]", /not an experiment/],
  ])("is rejected with a reason: %s", (_what, text, reason) => {
    expect(() => parseExperiment(text)).toThrow(reason);
  });

  test("is valid in the published JSON Schema", () => {
    const published = z.fromJSONSchema(experimentJsonSchema());
    expect(published.safeParse(EXPERIMENT).error).toBeUndefined();
    expect(published.safeParse({ ...EXPERIMENT, experiment: 2 }).success).toBe(false);
  });
});

/** Encodes a text as the fragment of a link. */
async function packed(text: string): Promise<string> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return Buffer.from(await new Response(stream).arrayBuffer()).toString("base64url");
}

describe("the link of an experiment", () => {
  test("contains the complete experiment in characters that URLs allow", async () => {
    const experiment = { ...EXPERIMENT, notes: "Größe 東京 🚀" };
    const fragment = await toFragment(experiment);
    expect(fragment).toMatch(/^[\w-]+$/);
    expect(await fromFragment(fragment)).toEqual(experiment);
  });

  test("is shorter than the file", async () => {
    expect((await toFragment(EXPERIMENT)).length).toBeLessThan(JSON.stringify(EXPERIMENT).length / 2);
  });

  test("is rejected if a part of it is missing or changed", async () => {
    const fragment = await toFragment(EXPERIMENT);
    for (const broken of [fragment.slice(0, -20), "!!!", "", `AAAA${fragment}`]) {
      await expect(fromFragment(broken)).rejects.toMatchObject({ code: "invalid_parameter" });
    }
  });

  test("may contain an experiment of exactly the maximum size, and no byte more", async () => {
    const largest = JSON.stringify(EXPERIMENT).padEnd(16 * 1024 * 1024);
    expect(await fromFragment(await packed(largest))).toEqual(EXPERIMENT);
    await expect(fromFragment(await packed(`${largest} `))).rejects.toThrow("does not contain an experiment");
  });

  test("is rejected before a decompression bomb fills the memory", async () => {
    const bomb = await packed(" ".repeat(64 * 1024 * 1024));
    await expect(fromFragment(bomb)).rejects.toThrow("does not contain an experiment");
  });
});
