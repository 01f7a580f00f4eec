import { type RarerType, RARER_FORMATS } from "./make-quantized-rarer.ts";
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

/** Types that a copy can be made in. */
export type CopyType = "F16" | "Q8_0" | "Q4_0" | "Q4_K" | "Q5_K" | "Q6_K" | RarerType;

const SUPER_BLOCK = 256;
const GROUP = 32;
/** Scales and minima of the K types have six bits. */
const MAX_SCALE = 63;

/**
 * The formats are those of ggml's quants; rounding is plain, without ggml's search for better scales. Loops over single
 * weights are plain too: a model has millions.
 */
export const COPY_FORMATS: Readonly<Record<CopyType, BlockFormat>> = {
  F16: {
    id: 1,
    fileType: 1,
    weights: GROUP,
    bytes: 2 * GROUP,
    quantize: (weights, out, at) => {
      for (let index = 0; index < GROUP; index++) out.setFloat16(at + 2 * index, weights[index]!, true);
    },
  },
  Q8_0: {
    id: 8,
    fileType: 7,
    weights: GROUP,
    bytes: 34,
    quantize: (weights, out, at) => {
      const scale = setHalf(out, at, largest(weights) / 127);
      const levels = toLevels(weights, 0, scale, [-127, 127]);
      for (let index = 0; index < GROUP; index++) out.setInt8(at + 2 + index, levels[index]!);
    },
  },
  Q4_0: {
    id: 2,
    fileType: 2,
    weights: GROUP,
    bytes: 18,
    quantize: (weights, out, at) => {
      const scale = setHalf(out, at, extreme(weights) / -8);
      const levels = toLevels(weights, 0, scale, [-8, 7]);
      for (let index = 0; index < GROUP; index++)
        addBits(out, at + 2 + (index % 16), levels[index]! + 8, index < 16 ? 0 : 4);
    },
  },
  Q4_K: {
    id: 12,
    fileType: 14,
    weights: SUPER_BLOCK,
    bytes: 144,
    quantize: (weights, out, at) => {
      const levels = quantizeGroups(weights, out, at, 15);
      for (let index = 0; index < SUPER_BLOCK; index++) addNibble(out, at + 16, index, levels[index]!);
    },
  },
  Q5_K: {
    id: 13,
    fileType: 16,
    weights: SUPER_BLOCK,
    bytes: 176,
    quantize: (weights, out, at) => {
      const levels = quantizeGroups(weights, out, at, 31);
      for (let index = 0; index < SUPER_BLOCK; index++) {
        addNibble(out, at + 48, index, levels[index]! & 15);
        addBits(out, at + 16 + (index % GROUP), levels[index]! >> 4, Math.floor(index / GROUP));
      }
    },
  },
  Q6_K: { id: 14, fileType: 18, weights: SUPER_BLOCK, bytes: 210, quantize: quantizeQ6K },
  ...RARER_FORMATS,
};

/** Pairs of groups share their bytes. */
function addNibble(out: DataView, at: number, index: number, level: number): void {
  const group = Math.floor(index / GROUP);
  addBits(out, at + GROUP * Math.floor(group / 2) + (index % GROUP), level, group % 2 ? 4 : 0);
}

function quantizeQ6K(weights: Float32Array, out: DataView, at: number): void {
  const groups = groupsOf(weights, 16);
  const steps = groups.map((group) => extreme(group) / -32);
  const scale = setHalf(out, at + 208, largest(Float32Array.from(steps)) / 127);
  groups.forEach((group, number) => {
    const groupScale = toLevel(steps[number]!, scale, -127, 127);
    out.setInt8(at + 192 + number, groupScale);
    const levels = toLevels(group, 0, scale * groupScale, [-32, 31]);
    for (let inside = 0; inside < 16; inside++) {
      const index = 16 * number + inside;
      const level = levels[inside]! + 32;
      const part = Math.floor(index / 128);
      const quarter = Math.floor(index / GROUP) % 4;
      const low = at + 64 * part + GROUP * (quarter % 2) + (index % GROUP);
      addBits(out, low, level & 15, quarter < 2 ? 0 : 4);
      addBits(out, at + 128 + GROUP * part + (index % GROUP), level >> 4, 2 * quarter);
    }
  });
}

/** Writes the two halves and the packed scales and minima of a Q4_K or Q5_K block; gives every weight's level. */
function quantizeGroups(weights: Float32Array, out: DataView, at: number, maxLevel: number): Int16Array {
  const groups = groupsOf(weights, GROUP);
  const bounds = groups.map(boundsOf);
  const minima = bounds.map(([least]) => Math.max(0, -least));
  const steps = bounds.map(([, most], number) => (most + minima[number]!) / maxLevel);
  const scale = setHalf(out, at, Math.max(0, ...steps) / MAX_SCALE);
  const minimum = setHalf(out, at + 2, Math.max(...minima) / MAX_SCALE);
  const levels = new Int16Array(SUPER_BLOCK);
  groups.forEach((group, number) => {
    const groupScale = toLevel(Math.max(0, steps[number]!), scale, 0, MAX_SCALE);
    const groupMinimum = toLevel(minima[number]!, minimum, 0, MAX_SCALE);
    packScaleAndMinimum(out, at + 4, number, groupScale, groupMinimum);
    const ofGroup = toLevels(group, -(minimum * groupMinimum), scale * groupScale, [0, maxLevel]);
    levels.set(ofGroup, GROUP * number);
  });
  return levels;
}

/** Six bits each: the first four groups plainly, the others over four low bits and two spare high ones. */
function packScaleAndMinimum(out: DataView, at: number, group: number, scale: number, minimum: number): void {
  if (group < 4) {
    addBits(out, at + group, scale, 0);
    addBits(out, at + group + 4, minimum, 0);
    return;
  }
  addBits(out, at + group + 4, (scale & 15) | ((minimum & 15) << 4), 0);
  addBits(out, at + group - 4, scale >> 4, 6);
  addBits(out, at + group, minimum >> 4, 6);
}
