import { expect, test } from "vitest";
import { FormParts } from "../../../../src/http/input/form-data.ts";

const BOUNDARY = "----x";
/** File that contains many beginnings of the boundary. */
const FILE = `a\r\n-\r\n--\r\n----\r\n------\r\r\n${"z".repeat(50)}\r\n------`;
const FORM =
  `preamble\r\n------x\r\nContent-Disposition: form-data; name="file"; filename="a \\"b\\".jsonl"\r\n` +
  `Content-Type: text/plain\r\n\r\n${FILE}\r\n------x  \r\ncontent-disposition: form-data; name=purpose\r\n\r\nbatch\r\n------x--\r\nepilogue`;

async function* inChunks(text: string, size: number): AsyncGenerator<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.byteLength; at += size) yield bytes.subarray(at, at + size);
}

async function read(text: string, size = 7): Promise<[string, string | undefined, string][]> {
  const parts = new FormParts(inChunks(text, size), BOUNDARY);
  const found: [string, string | undefined, string][] = [];
  for (let part = await parts.next(); part; part = await parts.next()) {
    let content = "";
    for await (const chunk of parts.content()) content += new TextDecoder().decode(chunk);
    found.push([part.name, part.fileName, content]);
  }
  return found;
}

test.each([1, 2, 3, 5, 64, 10_000])("FormParts parses a form in chunks of %i bytes", async (size) => {
  expect(await read(FORM, size)).toEqual([
    ["file", 'a "b".jsonl', FILE],
    ["purpose", undefined, "batch"],
  ]);
});

test("FormParts skips unread parts", async () => {
  const parts = new FormParts(inChunks(FORM, 9), BOUNDARY);
  expect((await parts.next())?.name).toBe("file");
  expect((await parts.next())?.name).toBe("purpose");
  expect(await parts.next()).toBeUndefined();
});

test.each([
  ["", "ends in the middle"],
  ["------x\r\n", "ends in the middle"],
  [FORM.slice(0, -20), "ends in the middle"],
  ["------x\r\n\r\nno headers\r\n------x--", "without a name"],
  [`------x\r\nA: ${"a".repeat(20_000)}`, "too long headers"],
])("FormParts refuses an invalid form: %#", async (text, why) => {
  await expect(read(text, 1000)).rejects.toThrow(why);
});
