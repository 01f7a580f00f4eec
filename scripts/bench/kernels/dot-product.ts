import { concatBytes, section, sized, sizedText, vector } from "../../../wasm/linker/byte-writer.ts";

const I32 = 0x7f;
/** v128.const with the same byte sixteen times. */
const bytesOf = (byte: number): number[] => [0xfd, 12, ...Array.from({ length: 16 }, () => byte)];
/** i32x4.relaxed_dot_i8x16_i7x16_add_s of 127 and 255 in all bytes, and of zero; i32x4.extract_lane 0. */
const CODE = [...bytesOf(127), ...bytesOf(255), ...bytesOf(0), 0xfd, 0x93, 0x02, 0xfd, 0x1b, 0];
const NAME = "dot";

/**
 * The dot product of bytes with which WebAssembly computes in this process, as our kernels ask for it (`dot_of_machine` in
 * wasm/kernels/simd.h): on x64 it takes a processor with AVX-VNNI, which AVX-512 does not imply.
 */
export function describeDotProduct(): string {
  const bytes = concatBytes([
    [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    section(1, vector([[0x60, 0, 1, I32]])),
    section(3, vector([[0]])),
    section(7, vector([concatBytes([sizedText(NAME), [0, 0]])])),
    section(10, vector([sized(new Uint8Array([0, ...CODE, 0x0b]))])),
  ]);
  const dot = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports[NAME];
  const sum: unknown = typeof dot === "function" ? dot() : undefined;
  if (sum === 4 * 127 * 255) return "dot products of unsigned bytes (vpdpbusd)";
  return sum === 4 * 127 * -1 ? "dot products of signed bytes (sdot)" : "no dot product of bytes";
}
