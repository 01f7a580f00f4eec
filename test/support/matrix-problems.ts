import { FORMATS } from "./dequantize.ts";

export type Blocks = keyof typeof FORMATS;
export const BLOCK_TYPES = Object.keys(FORMATS).filter((name): name is Blocks => name in FORMATS);
/** A normal half of moderate size, a subnormal one, zero, a negative one. */
const HALF_SCALES = [0x2c00, 0x0003, 0x0000, 0xa800, 0x1401];

/** Random blocks whose scales are random ones of `halves`. */
export function randomWeights(
  type: Blocks,
  rows: number,
  k: number,
  random: () => number,
  halves: readonly number[] = HALF_SCALES,
): { bytes: Uint8Array; values: number[] } {
  const format = FORMATS[type];
  const blocks = (rows * k) / format.weights;
  const bytes = new Uint8Array(blocks * format.bytes);
  const values: number[] = [];
  for (let index = 0; index < blocks; index++) {
    const block = new DataView(bytes.buffer, index * format.bytes, format.bytes);
    for (let at = 0; at < format.bytes; at++) block.setUint8(at, Math.floor(random() * 256));
    for (const at of format.halves) block.setUint16(at, halves[Math.floor(random() * halves.length)]!, true);
    if (type === "MXFP4") block.setUint8(0, 120 + Math.floor(random() * 12));
    values.push(...format.dequantize(block));
  }
  return { bytes, values };
}

/** Integers with ±127 in each block of 32 and -127 first: quantizing them to bytes loses nothing. */
export function exactActivations(columns: number, k: number, random: () => number): Float32Array {
  return Float32Array.from({ length: columns * k }, (_, index) => {
    if (index % 256 === 0) return -127;
    return index % 32 === 5 ? 127 : Math.round(random() * 254 - 127);
  });
}

export function reference(
  values: readonly number[],
  activations: Float32Array,
  rows: number,
  k: number,
): { sum: number; magnitude: number }[] {
  return Array.from({ length: (activations.length / k) * rows }, (_, index) => {
    const row = index % rows;
    const column = Math.floor(index / rows);
    let sum = 0;
    let magnitude = 0;
    for (let i = 0; i < k; i++) {
      const product = values[row * k + i]! * activations[column * k + i]!;
      sum += product;
      magnitude += Math.abs(product);
    }
    return { sum, magnitude };
  });
}

/** The same with scales as far apart as halves can be: those of columns take turns. */
export function extremeActivations(columns: number, k: number, random: () => number): Float32Array {
  return exactActivations(columns, k, random).map(
    (value, index) => value * (Math.floor(index / k) % 2 === 0 ? LARGEST_HALF : SMALLEST_HALF),
  );
}
const LARGEST_HALF = 65_504;
const SMALLEST_HALF = 2 ** -24;

/** True when all results of the columns named are NaN, and no others. */
export function areNanIn(columns: readonly number[], results: Float32Array, rows: number): boolean {
  return results.every((value, index) => Number.isNaN(value) === columns.includes(Math.floor(index / rows)));
}

/** Rounding of f32 sums, relative to the sum of the magnitudes. */
export const F32_TOLERANCE = 3e-6;
/** Rounding of activations to bytes, relative to the sum of the magnitudes. */
export const EIGHT_BIT_TOLERANCE = 0.02;

/** The largest error, relative to the magnitude of what was summed; NaN when a value is. */
export function worstError(
  actual: Float32Array,
  expected: readonly { sum: number; magnitude: number }[],
): number {
  return expected
    .map(({ sum, magnitude }, index) => Math.abs(actual[index]! - sum) / (magnitude + 1e-30))
    .reduce((worst, error) => (error > worst || Number.isNaN(error) ? error : worst), 0);
}
