import { describe, expect, test } from "vitest";
import { decodeValue, encodeValue } from "../../../src/fleet/wire-format.ts";

describe("an encoded value", () => {
  test.each([
    ["plain", { a: [1, "two", null, true, { b: "\u{1f600}" }] }],
    [
      "binary",
      { image: new Uint8Array([1, 2, 255]), ids: new Int32Array([-1, 7]), more: [new Uint8Array()] },
    ],
    ["numbers that JSON lacks", { keepAliveMs: Infinity, least: -Infinity }],
    ["members that look like marks", { schema: { $: "bytes", at: 0, length: 3, $ref: "#" }, $: { $: 1 } }],
    ["a member that would change what an object is", JSON.parse('{"__proto__": {"polluted": true}}')],
  ])("is the same there: %s", (_name, value) => {
    expect(decodeValue(encodeValue(value), 1000)).toEqual(value);
    expect("polluted" in {}).toBe(false);
  });

  test("is decoded into copies of its binary parts", () => {
    const bytes = Buffer.from(encodeValue({ data: new Uint8Array([1, 2, 3]) }));
    const value: unknown = decodeValue(bytes, 1000);
    bytes.fill(0, bytes.length - 3);
    expect(value).toEqual({ data: new Uint8Array([1, 2, 3]) });
  });

  test("has no binary parts where a marker is escaped", () => {
    const forged = encodeText(String.raw`{"\u0024":"bytes","at":0,"length":4}`);
    expect(decodeValue(forged, 1000)).toEqual({ $: "bytes", at: 0, length: 4 });
  });

  test.each([
    ["nothing", new Uint8Array()],
    ["half a header", new Uint8Array([0, 0])],
    ["a length beyond its end", new Uint8Array([255, 255, 255, 255, 123])],
    ["no JSON", encodeText("{")],
    ["a part that is not there", encodeText('{"$":"bytes","at":0,"length":4}')],
    ["a part at no place", encodeText('{"$":"bytes","at":-1,"length":1}')],
    ["an unknown mark", encodeText('{"$":"date","at":0,"length":0}')],
    ["too many values", encodeText(`[${"[],".repeat(1000)}1]`)],
    ["too deep", encodeText("[".repeat(200_000) + "]".repeat(200_000))],
  ])("is refused when it is forged: %s", (_name, bytes) => {
    expect(() => decodeValue(bytes, 1000)).toThrow(Error);
  });
});

function encodeText(json: string): Uint8Array {
  const text = new TextEncoder().encode(json);
  const bytes = new Uint8Array(4 + text.length);
  new DataView(bytes.buffer).setUint32(0, text.length);
  bytes.set(text, 4);
  return bytes;
}
