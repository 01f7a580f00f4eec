import { beforeAll, describe, expect, test } from "vitest";
import { hostMemory, linkHost } from "../../support/kernel-host-module.ts";

const PAGES = 32;
/** Above the kernels' stack: a std::string, its bytes when they are many, what is decoded, and its code points. */
const TEXT = 1_200_000;
const BYTES = TEXT + 64;
const DECODED = TEXT + 1024;
const POINTS = TEXT + 2048;
/** Longest text that a std::string holds in place. */
const MAX_IN_PLACE = 22;

interface Unfinished {
  readonly value: number;
  readonly remaining: number;
}

const ALL_BYTES = Array.from({ length: 256 }, (_, byte) => byte);

/** Where what a byte means changes. */
const EDGES = [
  0x00, 0x22, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xed, 0xf0, 0xf1,
  0xf4, 0xf5, 0xff,
];

const WHOLE: Unfinished = { value: 0, remaining: 0 };

/** Bits and bytes of the lead of a character. */
const LEADS = [
  { from: 0xc0, bits: 0x1f, remaining: 1 },
  { from: 0xe0, bits: 0x0f, remaining: 2 },
  { from: 0xf0, bits: 0x07, remaining: 3 },
];

/** What a text leaves unfinished, by llama.cpp's own reckoning; it takes each byte of 0xC0 and more for a lead. */
function unfinishedAfter(bytes: readonly number[]): Unfinished {
  let { value, remaining } = WHOLE;
  for (const byte of bytes) {
    const lead = LEADS.findLast(({ from }) => byte >= from);
    if (remaining > 0) [value, remaining] = [(value << 6) | (byte & 0x3f), remaining - 1];
    else if (lead) [value, remaining] = [byte & lead.bits, lead.remaining];
  }
  return { value, remaining };
}

/** Whether bytes are text, or may become it by further ones; by JavaScript's own decoder, without a zero. */
function isBeginningOfText(bytes: readonly number[]): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(bytes), { stream: true });
    return !bytes.includes(0);
  } catch {
    return false;
  }
}

describe("the reading of a token's bytes under a grammar", () => {
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

  test("takes a sequence of up to four bytes just when it is text or begins one", () => {
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

  test("takes a character in as many tokens as it has bytes just as in one", () => {
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

  test("reads long texts, which lie elsewhere, to their end", () => {
    const long = [...Buffer.from("日本語のとても長い文章")];
    expect(isTaken(long)).toBe(true);
    expect(isTaken([...long, 0xff])).toBe(false);
    expect(isTaken([...long, 0xe3])).toBe(true);
  });
});
