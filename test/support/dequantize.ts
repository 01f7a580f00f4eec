/** ggml's number of each weight type. */
export const TYPE = {
  F32: 0,
  F16: 1,
  Q4_0: 2,
  Q4_1: 3,
  Q5_0: 6,
  Q5_1: 7,
  Q8_0: 8,
  Q2_K: 10,
  Q3_K: 11,
  Q4_K: 12,
  Q5_K: 13,
  Q6_K: 14,
  IQ4_NL: 20,
  IQ4_XS: 23,
  BF16: 30,
  MXFP4: 39,
} as const;
export type TypeName = keyof typeof TYPE;

const IQ4_CODES = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
const MXFP4_CODES = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/** Half precision to number, infinities and NaN aside. */
export function halfToNumber(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const mantissa = bits & 0x3ff;
  return exponent === 0 ? sign * mantissa * 2 ** -24 : sign * (1024 + mantissa) * 2 ** (exponent - 25);
}

interface Format {
  readonly weights: number;
  readonly bytes: number;
  /** Where halves stand that scale the block: random bytes there would be infinities. */
  readonly halves: readonly number[];
  dequantize(block: DataView): number[];
}

const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
const nibble = (block: DataView, at: number, index: number): number => {
  const byte = block.getUint8(at + (index % 16));
  return index < 16 ? byte & 15 : byte >> 4;
};
const half = (block: DataView, at: number): number => halfToNumber(block.getUint16(at, true));
const bit = (value: number, index: number): number => Math.floor(value / 2 ** index) % 2;

/** Six-bit scale and minimum of group g, as Q4_K and Q5_K pack them. */
function scaleAndMin(block: DataView, at: number, g: number): [number, number] {
  const byte = (index: number): number => block.getUint8(at + index);
  if (g < 4) return [byte(g) & 63, byte(g + 4) & 63];
  return [(byte(g + 4) & 15) | ((byte(g - 4) >> 6) << 4), (byte(g + 4) >> 4) | ((byte(g) >> 6) << 4)];
}

/** Six-bit scale of 16-group j, as Q3_K packs them. */
function scaleQ3K(block: DataView, at: number, j: number): number {
  const low = j < 8 ? block.getUint8(at + j) & 15 : block.getUint8(at + j - 8) >> 4;
  const high = (block.getUint8(at + 8 + (j % 4)) >> (2 * Math.floor(j / 4))) & 3;
  return (low | (high << 4)) - 32;
}

/** Each block format, written down from ggml's definitions weight by weight: slow and plain on purpose. */
export const FORMATS: Readonly<Record<Exclude<TypeName, "F32" | "F16" | "BF16">, Format>> = {
  Q4_0: {
    weights: 32,
    bytes: 18,
    halves: [0],
    dequantize: (block) => range(32).map((i) => half(block, 0) * (nibble(block, 2, i) - 8)),
  },
  Q4_1: {
    weights: 32,
    bytes: 20,
    halves: [0, 2],
    dequantize: (block) => range(32).map((i) => half(block, 0) * nibble(block, 4, i) + half(block, 2)),
  },
  Q5_0: {
    weights: 32,
    bytes: 22,
    halves: [0],
    dequantize: (block) =>
      range(32).map(
        (i) => half(block, 0) * (nibble(block, 6, i) + 16 * bit(block.getUint32(2, true), i) - 16),
      ),
  },
  Q5_1: {
    weights: 32,
    bytes: 24,
    halves: [0, 2],
    dequantize: (block) =>
      range(32).map(
        (i) =>
          half(block, 0) * (nibble(block, 8, i) + 16 * bit(block.getUint32(4, true), i)) + half(block, 2),
      ),
  },
  Q8_0: {
    weights: 32,
    bytes: 34,
    halves: [0],
    dequantize: (block) => range(32).map((i) => half(block, 0) * block.getInt8(2 + i)),
  },
  IQ4_NL: {
    weights: 32,
    bytes: 18,
    halves: [0],
    dequantize: (block) => range(32).map((i) => half(block, 0) * IQ4_CODES[nibble(block, 2, i)]!),
  },
  MXFP4: {
    weights: 32,
    bytes: 17,
    halves: [],
    dequantize: (block) =>
      range(32).map((i) => 2 ** (block.getUint8(0) - 128) * MXFP4_CODES[nibble(block, 1, i)]!),
  },
  Q2_K: {
    weights: 256,
    bytes: 84,
    halves: [80, 82],
    dequantize: (block) =>
      range(256).map((i) => {
        const scales = block.getUint8(Math.floor(i / 16));
        const byte = block.getUint8(16 + 32 * Math.floor(i / 128) + (i % 32));
        const quant = (byte >> (2 * (Math.floor(i / 32) % 4))) & 3;
        return half(block, 80) * (scales & 15) * quant - half(block, 82) * (scales >> 4);
      }),
  },
  Q3_K: {
    weights: 256,
    bytes: 110,
    halves: [108],
    dequantize: (block) =>
      range(256).map((i) => {
        const byte = block.getUint8(32 + 32 * Math.floor(i / 128) + (i % 32));
        const low = (byte >> (2 * (Math.floor(i / 32) % 4))) & 3;
        const high = bit(block.getUint8(i % 32), Math.floor(i / 32));
        return half(block, 108) * scaleQ3K(block, 96, Math.floor(i / 16)) * (low + 4 * high - 4);
      }),
  },
  Q4_K: {
    weights: 256,
    bytes: 144,
    halves: [0, 2],
    dequantize: (block) =>
      range(256).map((i) => {
        const g = Math.floor(i / 32);
        const byte = block.getUint8(16 + 32 * Math.floor(g / 2) + (i % 32));
        const [scale, minimum] = scaleAndMin(block, 4, g);
        return half(block, 0) * scale * (g % 2 ? byte >> 4 : byte & 15) - half(block, 2) * minimum;
      }),
  },
  Q5_K: {
    weights: 256,
    bytes: 176,
    halves: [0, 2],
    dequantize: (block) =>
      range(256).map((i) => {
        const g = Math.floor(i / 32);
        const byte = block.getUint8(48 + 32 * Math.floor(g / 2) + (i % 32));
        const quant = (g % 2 ? byte >> 4 : byte & 15) + 16 * bit(block.getUint8(16 + (i % 32)), g);
        const [scale, minimum] = scaleAndMin(block, 4, g);
        return half(block, 0) * scale * quant - half(block, 2) * minimum;
      }),
  },
  Q6_K: {
    weights: 256,
    bytes: 210,
    halves: [208],
    dequantize: (block) =>
      range(256).map((i) => {
        const part = Math.floor(i / 128);
        const g = Math.floor(i / 32) % 4;
        const low = block.getUint8(64 * part + 32 * (g % 2) + (i % 32));
        const high = (block.getUint8(128 + 32 * part + (i % 32)) >> (2 * g)) & 3;
        const quant = ((g < 2 ? low & 15 : low >> 4) | (high << 4)) - 32;
        return half(block, 208) * block.getInt8(192 + Math.floor(i / 16)) * quant;
      }),
  },
  IQ4_XS: {
    weights: 256,
    bytes: 136,
    halves: [0],
    dequantize: (block) =>
      range(256).map((i) => {
        const g = Math.floor(i / 32);
        const low = (block.getUint8(4 + Math.floor(g / 2)) >> (4 * (g % 2))) & 15;
        const high = (block.getUint16(2, true) >> (2 * g)) & 3;
        return half(block, 0) * ((low | (high << 4)) - 32) * IQ4_CODES[nibble(block, 8 + 16 * g, i % 32)]!;
      }),
  },
};
