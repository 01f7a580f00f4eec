import { describe, expect, test } from "vitest";
import { fromFragment, toFragment } from "../../../src/experiments/share-link.ts";
import { EXPERIMENT } from "./sample-experiment.ts";

/** A text as the fragment of a link. */
async function packed(text: string): Promise<string> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return Buffer.from(await new Response(stream).arrayBuffer()).toString("base64url");
}

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

  test("may hold an experiment of exactly the largest size, and no byte more", async () => {
    const largest = JSON.stringify(EXPERIMENT).padEnd(16 * 1024 * 1024);
    expect(await fromFragment(await packed(largest))).toEqual(EXPERIMENT);
    await expect(fromFragment(await packed(`${largest} `))).rejects.toThrow("does not hold an experiment");
  });

  test("cannot fill the memory with what it unpacks to", async () => {
    const bomb = await packed(" ".repeat(64 * 1024 * 1024));
    await expect(fromFragment(bomb)).rejects.toThrow("does not hold an experiment");
  });
});
