import { describe, expect, test } from "vitest";
import { fromFragment, toFragment } from "../../../src/experiments/share-link.ts";
import { EXPERIMENT } from "./sample-experiment.ts";

describe("the link of an experiment", () => {
  test("holds the whole experiment in characters that an address may have", async () => {
    const experiment = { ...EXPERIMENT, notes: "Größe 東京 🚀" };
    const fragment = await toFragment(experiment);
    expect(fragment).toMatch(/^[\w-]+$/);
    expect(await fromFragment(fragment)).toEqual(experiment);
  });

  test("is shorter than the file", async () => {
    expect((await toFragment(EXPERIMENT)).length).toBeLessThan(JSON.stringify(EXPERIMENT).length / 2);
  });

  test("is refused when a part of it is missing or changed", async () => {
    const fragment = await toFragment(EXPERIMENT);
    for (const broken of [fragment.slice(0, -20), "!!!", "", `AAAA${fragment}`]) {
      await expect(fromFragment(broken)).rejects.toMatchObject({ code: "invalid_parameter" });
    }
  });

  test("cannot fill the memory with what it unpacks to", async () => {
    const stream = new Blob([" ".repeat(64 * 1024 * 1024)]).stream();
    const packed = stream.pipeThrough(new CompressionStream("deflate-raw"));
    const bomb = Buffer.from(await new Response(packed).arrayBuffer()).toString("base64url");
    await expect(fromFragment(bomb)).rejects.toThrow("does not hold an experiment");
  });
});
