export interface BlockFormat {
  /** ggml's number of the type. */
  readonly id: number;
  /** llama.cpp's general.file_type of a file mostly in this type. */
  readonly fileType: number;
  readonly weights: number;
  readonly bytes: number;
  /** Writes one block of weights at an offset of zeroed memory. */
  quantize(weights: Float32Array, out: DataView, at: number): void;
}

/** Writes some bits of a byte that is zero there. */
export function addBits(out: DataView, at: number, value: number, shift: number): void {
  out.setUint8(at, out.getUint8(at) | (value << shift));
}

/** Writes a half and gives the value that a reader will see. */
export function setHalf(out: DataView, at: number, value: number): number {
  out.setFloat16(at, value, true);
  return out.getFloat16(at, true);
}

/** The whole number nearest to a value in steps, within bounds. */
export function toLevel(value: number, step: number, low: number, high: number): number {
  return step === 0 ? Math.max(0, low) : Math.min(high, Math.max(low, Math.round(value / step)));
}

/** The largest magnitude. */
export function largest(values: Float32Array): number {
  return Math.abs(extreme(values));
}

/** The value that is farthest from zero, with its sign. */
export function extreme(values: Float32Array): number {
  let found = 0;
  for (let index = 0; index < values.length; index++)
    if (Math.abs(values[index]!) > Math.abs(found)) found = values[index]!;
  return found;
}

/** The smallest and the largest. */
export function boundsOf(values: Float32Array): readonly [least: number, most: number] {
  let least = Infinity;
  let most = -Infinity;
  for (let index = 0; index < values.length; index++) {
    least = Math.min(least, values[index]!);
    most = Math.max(most, values[index]!);
  }
  return [least, most];
}

/** Each value in steps above an offset: see {@link toLevel}. */
export function toLevels(
  values: Float32Array,
  offset: number,
  step: number,
  [low, high]: readonly [low: number, high: number],
): Int16Array {
  const levels = new Int16Array(values.length);
  for (let index = 0; index < values.length; index++)
    levels[index] = toLevel(values[index]! - offset, step, low, high);
  return levels;
}

/** Parts of so many values each. */
export function groupsOf(values: Float32Array, length: number): Float32Array[] {
  return Array.from({ length: values.length / length }, (_, group) =>
    values.subarray(length * group, length * (group + 1)),
  );
}
