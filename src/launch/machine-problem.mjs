// @ts-check
import os from "node:os";

/** 32-bit architectures, as in process.arch. A model may need more memory than 32 bits can address. */
const ARCHS_OF_32_BITS = new Set(["arm", "ia32", "mips", "mipsel", "ppc", "s390"]);

/** Problem of a Node whose flags turn WebAssembly off. */
export const WASM_IS_OFF =
  "Models run in WebAssembly, which this Node has switched off: start Daybreak without --jitless (NODE_OPTIONS), or with another Node.";

/** A WebAssembly module with one 64-bit memory. */
export const LARGE_MEMORY = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 5, 3, 1, 4, 1);

/**
 * Explains why Daybreak cannot run on this machine, or not with this build of Node; undefined if it can.
 * @param {object} [machine]
 * @param {string} [machine.arch] as in process.arch
 * @param {string} [machine.endianness] as in os.endianness()
 * @returns {string | undefined}
 */
export function machineProblem({ arch = process.arch, endianness = os.endianness() } = {}) {
  if (ARCHS_OF_32_BITS.has(arch)) {
    return `Daybreak needs a 64-bit Node on a 64-bit system, and this one is for 32 bits (${arch}).`;
  }
  // WebAssembly's memory is little-endian, and llama.cpp's JavaScript reads it in the processor's order.
  if (endianness !== "LE") {
    return `Daybreak does not run on this processor (${arch}): it needs one that is little-endian.`;
  }
  return undefined;
}

/**
 * Explains why a Node that is new enough cannot run models; undefined if it can.
 * @param {Pick<typeof WebAssembly, "validate">} [wasm]
 * @returns {string | undefined}
 */
export function wasmProblem(wasm = globalThis.WebAssembly) {
  if (wasm === undefined) return WASM_IS_OFF;
  if ("Suspending" in wasm && wasm.validate(LARGE_MEMORY)) return undefined;
  return "This Node's WebAssembly lacks large memories (memory64) or promises (JSPI), which models need: start Daybreak with another build of Node.";
}
