import { beforeAll, describe, expect, test } from "vitest";
import { hostMemory, linkHost } from "../../support/kernel-host-module.ts";

const PAGES = 32;
/** Addresses above the kernels' stack: a std::string, its bytes if there are many, the result, and its code points. */
const TEXT = 1_200_000;
const BYTES = TEXT + 64;
const DECODED = TEXT + 1024;
const POINTS = TEXT + 2048;
/** Longest text that a std::string stores in place. */
const MAX_IN_PLACE = 22;

interface Unfinished {
  readonly value: number;
  readonly remaining: number;
}

const ALL_BYTES = Array.from({ length: 256 }, (_, byte) => byte);

/** Bytes at the limits of their meanings in UTF-8. */
const EDGES = [
  0x00, 0x22, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xed, 0xf0, 0xf1,
  0xf4, 0xf5, 0xff,
];

const WHOLE: Unfinished = { value: 0, remaining: 0 };

/** Bits in a lead byte, and bytes of its character. */
const LEADS = [
  { from: 0xc0, bits: 0x1f, remaining: 1 },
  { from: 0xe0, bits: 0x0f, remaining: 2 },
  { from: 0xf0, bits: 0x07, remaining: 3 },
];

/** Incomplete character at a text's end, computed like llama.cpp, where every byte from 0xC0 on is a lead. */
function unfinishedAfter(bytes: readonly number[]): Unfinished {
  let { value, remaining } = WHOLE;
  for (const byte of bytes) {
    const lead = LEADS.findLast(({ from }) => byte >= from);
    if (remaining > 0) [value, remaining] = [(value << 6) | (byte & 0x3f), remaining - 1];
    else if (lead) [value, remaining] = [byte & lead.bits, lead.remaining];
  }
  return { value, remaining };
}

/** True if bytes are valid UTF-8 or a beginning of it, according to JavaScript's decoder, without a zero. */
function isBeginningOfText(bytes: readonly number[]): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(bytes), { stream: true });
    return !bytes.includes(0);
  } catch {
    return false;
  }
}

describe("decoding a token's bytes for a grammar", () => {
  let isTaken: (bytes: readonly number[], before?: Unfinished) => boolean;

  beforeAll(async () => {
    const memory = hostMemory(PAGES, { maximum: PAGES });
    const module = await WebAssembly.compile(linkHost(PAGES, false));
    const { exports } = await WebAssembly.instantiate(module, { env: { memory } });
    const decode = exports["decode_utf8"];
    if (typeof decode !== "function") throw new Error("the host has no decode_utf8");
    const view = new DataView(memory.buffer);
    const heap = new Uint8Array(memory.buffer);
    isTaken = (bytes, { value, remaining } = WHOLE) => {
      const isLong = bytes.length > MAX_IN_PLACE;
      heap.set(bytes, isLong ? BYTES : TEXT);
      if (isLong) {
        view.setBigUint64(TEXT, BigInt(BYTES), true);
        view.setBigUint64(TEXT + 8, BigInt(bytes.length), true);
      }
      view.setUint8(TEXT + 23, isLong ? 0x80 : bytes.length);
      view.setBigUint64(DECODED, BigInt(POINTS), true);
      view.setInt32(DECODED + 28, 0, true);
      decode(BigInt(DECODED), BigInt(TEXT), value, remaining);
      return view.getInt32(DECODED + 28, true) === 0;
    };
  });

  test("accepts a sequence of up to four bytes only if it is a valid beginning of UTF-8", () => {
    const wrong: number[][] = [];
    const open: number[][] = [[]];
    for (let before = open.pop(); before; before = open.pop()) {
      for (const next of before.length < 2 ? ALL_BYTES : EDGES) {
        const bytes = [...before, next];
        const isRight = isBeginningOfText(bytes);
        if (isTaken(bytes) !== isRight) wrong.push(bytes);
        if (isRight && bytes.length < 4 && EDGES.includes(next)) open.push(bytes);
      }
    }
    expect(wrong).toEqual([]);
  });

  test("accepts a character split into several tokens like one in a single token", () => {
    const wrong: number[][] = [];
    for (const lead of [0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4]) {
      const open = [[lead]];
      for (let before = open.pop(); before; before = open.pop()) {
        for (const next of ALL_BYTES) {
          const bytes = [...before, next];
          const isRight = isBeginningOfText(bytes);
          if (isTaken([next], unfinishedAfter(before)) !== isRight) wrong.push(bytes);
          if (isRight && unfinishedAfter(bytes).remaining > 0 && EDGES.includes(next)) open.push(bytes);
        }
      }
    }
    expect(wrong).toEqual([]);
  });

  test("decodes long texts, which are not stored in place, completely", () => {
    const long = [...Buffer.from("日本語のとても長い文章")];
    expect(isTaken(long)).toBe(true);
    expect(isTaken([...long, 0xff])).toBe(false);
    expect(isTaken([...long, 0xe3])).toBe(true);
  });
});
