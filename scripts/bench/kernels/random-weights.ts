import { FORMATS, type TypeName } from "../../../test/support/dequantize.ts";
import { randoms } from "../../../test/support/randoms.ts";

const MODERATE_HALF = 0x2c00;
const SUBNORMAL_HALF = 0x0155;

/**
 * Weights of random bits as they lie in a file.
 * @param subnormal whether the halves that scale blocks are subnormal numbers, or of moderate size
 */
export function randomWeights(type: TypeName, rows: number, k: number, subnormal: boolean): Uint8Array {
  if (type === "F32" || type === "F16" || type === "BF16") {
    return type === "F32"
      ? new Uint8Array(new Float32Array(rows * k).fill(0.25).buffer)
      : new Uint8Array(new Uint16Array(rows * k).fill(type === "F16" ? 0x3400 : 0x3e80).buffer);
  }
  const format = FORMATS[type];
  const bytes = new Uint8Array(((rows * k) / format.weights) * format.bytes);
  const random = randoms(1);
  for (let index = 0; index < bytes.length; index++) bytes[index] = Math.floor(256 * random());
  const view = new DataView(bytes.buffer);
  const scale = subnormal ? SUBNORMAL_HALF : MODERATE_HALF;
  for (let at = 0; at < bytes.length; at += format.bytes) {
    for (const half of format.halves) view.setUint16(at + half, scale, true);
    if (type === "MXFP4") view.setUint8(at, 124);
  }
  return bytes;
}
