import { describe, expect, it } from "vitest";
import { readLines } from "../../../../src/cli/client/read-lines.ts";

async function* chunks(...parts: (string | Uint8Array)[]) {
  for (const part of parts) yield typeof part === "string" ? Buffer.from(part) : part;
}

async function* failing() {
  yield Buffer.from("one\n");
  throw new Error("cut");
}

describe("readLines", () => {
  it("finds lines across chunks, leaves out empty ones, and needs no end at the last", async () => {
    const lines = await Array.fromAsync(readLines(chunks("on", "e\ntwo\r", "\n\n\nthr", "ee")));
    expect(lines).toEqual(["one", "two", "three"]);
  });

  it("puts characters together that were cut in the middle", async () => {
    const bytes = Buffer.from("grün 👍\n");
    const lines = await Array.fromAsync(
      readLines(chunks(bytes.subarray(0, 3), bytes.subarray(3, 8), bytes.subarray(8))),
    );
    expect(lines).toEqual(["grün 👍"]);
  });

  it("throws what its input throws", async () => {
    await expect(Array.fromAsync(readLines(failing()))).rejects.toThrow("cut");
  });
});
