import { concatBytes } from "../../wasm/linker/byte-writer.ts";
import { parseModule, SECTION } from "../../wasm/linker/wasm-module.ts";

/**
 * WebAssembly's relaxed dot product of bytes differs between machines where a byte of its second operand is above 127:
 * such bytes are unsigned with vpdpbusd, signed with sdot, and on other machines sums of two saturate at 16 bits.
 */
export const DOT_MACHINES = ["vpdpbusd", "sdot", "cut off"] as const;
export type DotMachine = (typeof DOT_MACHINES)[number];

/** i32x4.relaxed_dot_i8x16_i7x16_add_s, as long as the call of a function whose index is below 16384. */
const DOT = [0xfd, 0x93, 0x02] as const;
const V128 = 0x7b;
export const DOT_TYPE: readonly number[] = [0x60, 3, V128, V128, V128, 1, V128];

/** A copy of an object in which each dot product is a call of a function of {@link DOT_TYPE} instead. */
export function callForDots(object: Uint8Array, functionIndex: number): Uint8Array {
  const copy = new Uint8Array(object);
  const code = parseModule(object).sections.find(({ id }) => id === SECTION.code);
  let found = 0;
  for (let at = code?.start ?? 0; at < (code?.end ?? 0); at++) {
    if (!DOT.every((byte, index) => copy[at + index] === byte)) continue;
    copy.set([0x10, (functionIndex & 0x7f) | 0x80, functionIndex >> 7], at);
    found++;
  }
  if (found === 0) throw new TypeError("the object has no dot product");
  return copy;
}

const local = (index: number): number[] => [0x20, index];
const setLocal = (index: number): number[] => [0x21, index];
/** i16x8.extend_low_i8x16_s, or of the high half. */
const signed = (half: number): number[] => [0xfd, 0x87 + half, 1];
const unsigned = (half: number): number[] => [0xfd, 0x89 + half, 1];
/** i32x4.dot_i16x8_s of eight bytes each: sums of two products. */
const pairs = (half: number, extend: typeof signed): number[] => [
  ...local(0),
  ...signed(half),
  ...local(1),
  ...extend(half),
  0xfd,
  0xba,
  1,
  ...setLocal(3 + half),
];
/** Every other one of the eight sums. */
const everySecond = (first: number): number[] => [
  ...local(3),
  ...local(4),
  0xfd,
  13,
  ...[0, 2, 4, 6].flatMap((lane) => [0, 1, 2, 3].map((byte) => 4 * (lane + first) + byte)),
];
const ADD = [0xfd, 0xae, 1];
/** i16x8.narrow_i32x4_s, i32x4.extadd_pairwise_i16x8_s. */
const ADD_CUT_OFF = [0xfd, 0x85, 1, 0xfd, 0x7e];

/** The body of such a function: the dot product as that machine computes it, and one more call counted before. */
export function dotBody(machine: DotMachine, count: readonly number[]): Uint8Array {
  const extend = machine === "sdot" ? signed : unsigned;
  const sums =
    machine === "cut off"
      ? [...local(3), ...local(4), ...ADD_CUT_OFF]
      : [...everySecond(0), ...everySecond(1), ...ADD];
  return concatBytes([[1, 2, V128], count, pairs(0, extend), pairs(1, extend), sums, local(2), ADD, [0x0b]]);
}
