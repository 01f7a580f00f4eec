import { execFile } from "node:child_process";
import { readFile, truncate, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { readGgufHeader } from "../../../../src/models/gguf/inspect-gguf.ts";
import { ggufHeader, u32, writeGguf } from "../../../support/gguf-writer.ts";
import { tinyLlama } from "../../../support/tiny-models.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { randomNumbers } from "../../../support/random-numbers.ts";
import { PROC } from "../../../support/proc.ts";

const U64_MAX = 0xffff_ffff_ffff_ffffn;
/** Length of the part of headers that is damaged. */
const KEY_VALUE_START = 24;

const u64le = (value: bigint): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return bytes;
};
const u32le = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};
const key = (name: string): Buffer => Buffer.concat([u64le(BigInt(name.length)), Buffer.from(name)]);
const head = (tensors: bigint, keys: bigint, version = 3): Buffer =>
  Buffer.concat([Buffer.from("GGUF"), u32le(version), u64le(tensors), u64le(keys)]);
const tensor = (name: string, offset: bigint, { row = 1n, type = 0 } = {}): Buffer =>
  Buffer.concat([key(name), u32le(1), u64le(row), u32le(type), u64le(offset)]);
const STRING = 8;
const ARRAY = 9;
/** Padding after the header, so that claims do not already fail because of the file's size. */
const PADDING = Buffer.alloc(1024 * 1024);

const hostile: readonly (readonly [string, Buffer])[] = [
  ["nothing", Buffer.alloc(0)],
  ["a lone magic", Buffer.from("GGUF")],
  ["an unknown version", Buffer.concat([head(0n, 0n, 99), PADDING])],
  ["the retired version 1", Buffer.concat([head(0n, 0n, 1), PADDING])],
  ["2^64 - 1 tensors", Buffer.concat([head(U64_MAX, 0n), PADDING])],
  ["2^64 - 1 keys", Buffer.concat([head(0n, U64_MAX), PADDING])],
  ["ten million keys", Buffer.concat([head(0n, 10_000_000n), PADDING])],
  ["a key of 2^48 bytes", Buffer.concat([head(0n, 1n), u64le(2n ** 48n), PADDING])],
  [
    "a string of 2^48 bytes",
    Buffer.concat([head(0n, 1n), key("a"), u32le(STRING), u64le(2n ** 48n), PADDING]),
  ],
  ["a value of an unknown type", Buffer.concat([head(0n, 1n), key("a"), u32le(77), PADDING])],
  [
    "an array of 2^60 numbers",
    Buffer.concat([head(0n, 1n), key("a"), u32le(ARRAY), u32le(4), u64le(2n ** 60n), PADDING]),
  ],
  [
    "an array of 2^60 strings",
    Buffer.concat([head(0n, 1n), key("a"), u32le(ARRAY), u32le(STRING), u64le(2n ** 60n), PADDING]),
  ],
  [
    "arrays in arrays",
    Buffer.concat([head(0n, 1n), key("a"), u32le(ARRAY), u32le(ARRAY), u64le(1000n), PADDING]),
  ],
  ["a key twice", Buffer.concat([head(0n, 2n), key("a"), u32le(4), u32le(1), key("a"), u32le(4), u32le(1)])],
  ["an alignment of 0", ggufHeader({ metadata: { "general.alignment": u32(0) }, tensors: [] })],
  ["an alignment of 3", ggufHeader({ metadata: { "general.alignment": u32(3) }, tensors: [] })],
  ["a tensor of nine dimensions", Buffer.concat([head(1n, 0n), key("t"), u32le(9), PADDING])],
  [
    "a tensor of 2^60 by 2^60 weights",
    Buffer.concat([
      head(1n, 0n),
      key("t"),
      u32le(2),
      u64le(2n ** 60n),
      u64le(2n ** 60n),
      u32le(0),
      u64le(0n),
      PADDING,
    ]),
  ],
  [
    "a tensor of an unknown type, larger than the file",
    Buffer.concat([head(1n, 0n), key("t"), u32le(1), u64le(2n ** 40n), u32le(250), u64le(0n), PADDING]),
  ],
  [
    "a tensor that begins behind the end",
    Buffer.concat([head(1n, 0n), key("t"), u32le(1), u64le(1n), u32le(0), u64le(2n ** 40n), PADDING]),
  ],
  [
    "a tensor that is not aligned",
    Buffer.concat([head(1n, 0n), key("t"), u32le(1), u64le(1n), u32le(0), u64le(7n), PADDING]),
  ],
  ["a tensor that leaves a gap", Buffer.concat([head(1n, 0n), tensor("t", 64n), PADDING])],
  ["two tensors at one place", Buffer.concat([head(2n, 0n), tensor("a", 0n), tensor("b", 0n), PADDING])],
  ["a tensor twice", Buffer.concat([head(2n, 0n), tensor("a", 0n), tensor("a", 32n), PADDING])],
  ["half a block", Buffer.concat([head(1n, 0n), tensor("a", 0n, { row: 16n, type: 2 }), PADDING])],
  ["a name of 64 bytes", Buffer.concat([head(1n, 0n), tensor("x".repeat(64), 0n), PADDING])],
];

async function inFile(content: Buffer): Promise<string> {
  const file = path.join(await temporaryFolder(), "hostile.gguf");
  await writeFile(file, content);
  return file;
}

it.each([
  ["tensors one behind the other", Buffer.concat([head(2n, 0n), tensor("a", 0n), tensor("b", 32n), PADDING])],
  [
    "a tensor of a type of tomorrow between others",
    Buffer.concat([
      head(3n, 0n),
      tensor("a", 0n),
      tensor("b", 32n, { type: 250 }),
      tensor("c", 320n),
      PADDING,
    ]),
  ],
])("a header of %s is read", async (_what, content) => {
  await expect(readGgufHeader(await inFile(content))).resolves.toMatchObject({ fileSize: content.length });
});

describe("a hostile GGUF header", () => {
  it.each(hostile)("is rejected: %s", async (_what, content) => {
    const file = await inFile(content);
    await expect(readGgufHeader(file)).rejects.toMatchObject({ code: "invalid_model_file" });
  });

  it.skipIf(PROC.isMissing)(
    `takes no memory for claimed lengths: gigabytes of empty strings${PROC.note}`,
    async () => {
      const content = Buffer.concat([head(0n, 1n), key("a"), u32le(ARRAY), u32le(STRING), u64le(10n ** 9n)]);
      const file = await inFile(content);
      // A sparse file: 4 GB of zeros are half a billion empty strings.
      await truncate(file, 4 * 1024 ** 3);
      const before = process.memoryUsage().rss;

      await expect(readGgufHeader(file)).rejects.toMatchObject({ code: "invalid_model_file" });

      expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024);
    },
  );

  it("is rejected if the file is truncated at any position", async () => {
    const folder = await temporaryFolder();
    const complete = path.join(folder, "whole.gguf");
    writeGguf(complete, tinyLlama());
    const bytes = await readFile(complete);
    const cut = path.join(folder, "cut.gguf");
    const header = ggufHeader(tinyLlama()).length;
    const lengths = [0, 3, 23, 24, 25, header - 1, header, header + 1, bytes.length - 64];
    for (let at = 1024; at < header; at += 1024) lengths.push(at);
    for (const length of lengths) {
      await writeFile(cut, bytes.subarray(0, length));
      await expect(readGgufHeader(cut), `${length} bytes`).rejects.toMatchObject({
        code: "invalid_model_file",
      });
    }
  });

  it("is at worst rejected if bits are flipped", async () => {
    const folder = await temporaryFolder();
    const complete = path.join(folder, "whole.gguf");
    const model = tinyLlama();
    writeGguf(complete, model);
    const bytes = await readFile(complete);
    const header = ggufHeader(model).length;
    const random = randomNumbers(7);
    const flipped = path.join(folder, "flipped.gguf");
    for (let round = 0; round < 60; round++) {
      const copy = Buffer.from(bytes);
      const at = KEY_VALUE_START + Math.floor(random() * (header - KEY_VALUE_START));
      copy[at]! ^= 1 << Math.floor(random() * 8);
      await writeFile(flipped, copy);
      const outcome = await readGgufHeader(flipped).then(
        () => "read",
        (error: { code?: string }) => error.code,
      );
      expect(["read", "invalid_model_file"]).toContain(outcome);
    }
  });

  it.skipIf(process.platform === "win32")("does not block for a FIFO", async () => {
    const fifo = path.join(await temporaryFolder(), "fifo.gguf");
    await promisify(execFile)("mkfifo", [fifo]);

    await expect(readGgufHeader(fifo)).rejects.toMatchObject({ code: "invalid_model_file" });
  });
});
