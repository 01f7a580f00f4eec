import {
  addBits,
  type BlockFormat,
  boundsOf,
  extreme,
  groupsOf,
  largest,
  setHalf,
  toLevel,
  toLevels,
} from "./quantized-bits.ts";

/** Types that few files are in. */
export type RarerType =
  | "F32"
  | "BF16"
  | "Q4_1"
  | "Q5_0"
  | "Q5_1"
  | "IQ4_NL"
  | "MXFP4"
  | "Q2_K"
  | "Q3_K"
  | "IQ4_XS";

const IQ4_CODES = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
const MXFP4_CODES = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/** Layouts and rounding as in make-quantized-blocks.ts. */
export const RARER_FORMATS: Readonly<Record<RarerType, BlockFormat>> = {
  F32: {
    id: 0,
    fileType: 0,
    weights: 32,
    bytes: 128,
    quantize: (weights, out, at) => {
      for (let index = 0; index < 32; index++) out.setFloat32(at + 4 * index, weights[index]!, true);
    },
  },
  BF16: {
    id: 30,
    fileType: 32,
    weights: 32,
    bytes: 64,
    quantize: (weights, out, at) => {
      const bits = new Uint32Array(weights.slice().buffer);
      for (let index = 0; index < 32; index++) out.setUint16(at + 2 * index, bits[index]! >>> 16, true);
    },
  },
  Q4_1: {
    id: 3,
    fileType: 3,
    weights: 32,
    bytes: 20,
    quantize: (weights, out, at) => setNibbles(out, at + 4, levelsAboveMinimum(weights, out, at, 15)),
  },
  Q5_0: {
    id: 6,
    fileType: 8,
    weights: 32,
    bytes: 22,
    quantize: (weights, out, at) => {
      const scale = setHalf(out, at, extreme(weights) / -16);
      setFiveBits(
        out,
        at + 2,
        toLevels(weights, 0, scale, [-16, 15]).map((level) => level + 16),
      );
    },
  },
  Q5_1: {
    id: 7,
    fileType: 9,
    weights: 32,
    bytes: 24,
    quantize: (weights, out, at) => setFiveBits(out, at + 4, levelsAboveMinimum(weights, out, at, 31)),
  },
  IQ4_NL: {
    id: 20,
    fileType: 25,
    weights: 32,
    bytes: 18,
    quantize: (weights, out, at) => {
      const scale = setHalf(out, at, extreme(weights) / -127);
      setNibbles(out, at + 2, nearestCodes(weights, scale, IQ4_CODES));
    },
  },
  MXFP4: {
    id: 39,
    fileType: 38,
    weights: 32,
    bytes: 17,
    quantize: (weights, out, at) => {
      const most = largest(weights);
      const exponent = most === 0 ? 0 : Math.ceil(Math.log2(most / 12)) + 128;
      out.setUint8(at, exponent);
      setNibbles(out, at + 1, nearestCodes(weights, 2 ** (exponent - 128), MXFP4_CODES));
    },
  },
  Q2_K: { id: 10, fileType: 10, weights: 256, bytes: 84, quantize: quantizeQ2K },
  Q3_K: { id: 11, fileType: 12, weights: 256, bytes: 110, quantize: quantizeQ3K },
  IQ4_XS: { id: 23, fileType: 30, weights: 256, bytes: 136, quantize: quantizeIQ4XS },
};

function quantizeQ2K(weights: Float32Array, out: DataView, at: number): void {
  const groups = groupsOf(weights, 16);
  const bounds = groups.map(boundsOf);
  const minima = bounds.map(([least]) => Math.max(0, -least));
  const steps = bounds.map(([, most], number) => Math.max(0, (most + minima[number]!) / 3));
  const scale = setHalf(out, at + 80, Math.max(...steps) / 15);
  const minimum = setHalf(out, at + 82, Math.max(...minima) / 15);
  groups.forEach((group, number) => {
    const groupScale = toLevel(steps[number]!, scale, 0, 15);
    const groupMinimum = toLevel(minima[number]!, minimum, 0, 15);
    out.setUint8(at + number, groupScale | (groupMinimum << 4));
    const levels = toLevels(group, -(minimum * groupMinimum), scale * groupScale, [0, 3]);
    for (let inside = 0; inside < 16; inside++)
      setTwoBits(out, at + 16, 16 * number + inside, levels[inside]!);
  });
}

function quantizeQ3K(weights: Float32Array, out: DataView, at: number): void {
  const groups = groupsOf(weights, 16);
  const steps = groups.map((group) => extreme(group) / -4);
  const scale = setHalf(out, at + 108, largest(Float32Array.from(steps)) / 31);
  groups.forEach((group, number) => {
    const groupScale = toLevel(steps[number]!, scale, -31, 31);
    const packed = groupScale + 32;
    addBits(out, at + 96 + (number % 8), packed & 15, number < 8 ? 0 : 4);
    addBits(out, at + 104 + (number % 4), packed >> 4, 2 * Math.floor(number / 4));
    const levels = toLevels(group, 0, scale * groupScale, [-4, 3]);
    for (let inside = 0; inside < 16; inside++) {
      const index = 16 * number + inside;
      const level = levels[inside]! + 4;
      setTwoBits(out, at + 32, index, level & 3);
      addBits(out, at + (index % 32), level >> 2, Math.floor(index / 32));
    }
  });
}

function quantizeIQ4XS(weights: Float32Array, out: DataView, at: number): void {
  const groups = groupsOf(weights, 32);
  const steps = groups.map((group) => extreme(group) / -127);
  const scale = setHalf(out, at, largest(Float32Array.from(steps)) / 31);
  groups.forEach((group, number) => {
    const groupScale = toLevel(steps[number]!, scale, -31, 31);
    const packed = groupScale + 32;
    addBits(out, at + 4 + Math.floor(number / 2), packed & 15, number % 2 ? 4 : 0);
    addBits(out, at + 2 + Math.floor(number / 4), packed >> 4, 2 * (number % 4));
    setNibbles(out, at + 8 + 16 * number, nearestCodes(group, scale * groupScale, IQ4_CODES));
  });
}

/** Writes the halves of scale and minimum. */
function levelsAboveMinimum(weights: Float32Array, out: DataView, at: number, highest: number): Int16Array {
  const [least, most] = boundsOf(weights);
  const minimum = setHalf(out, at + 2, least);
  const scale = setHalf(out, at, (most - minimum) / highest);
  return toLevels(weights, minimum, scale, [0, highest]);
}

function nearestCodes(weights: Float32Array, scale: number, codes: readonly number[]): Int16Array {
  const nearest = new Int16Array(weights.length);
  for (let index = 0; index < weights.length; index++) {
    let least = Infinity;
    for (let code = 0; code < codes.length; code++) {
      const distance = Math.abs(codes[code]! * scale - weights[index]!);
      if (distance >= least) continue;
      least = distance;
      nearest[index] = code;
    }
  }
  return nearest;
}

function setNibbles(out: DataView, at: number, levels: Int16Array): void {
  for (let index = 0; index < levels.length; index++)
    addBits(out, at + (index % 16), levels[index]! & 15, index < 16 ? 0 : 4);
}

/** The fifth bits stand before the nibbles. */
function setFiveBits(out: DataView, at: number, levels: Int16Array): void {
  for (let index = 0; index < levels.length; index++)
    addBits(out, at + (index >> 3), levels[index]! >> 4, index % 8);
  setNibbles(out, at + 4, levels);
}

/** Four weights that are 32 apart share a byte. */
function setTwoBits(out: DataView, at: number, index: number, level: number): void {
  addBits(out, at + 32 * Math.floor(index / 128) + (index % 32), level, 2 * (Math.floor(index / 32) % 4));
}
