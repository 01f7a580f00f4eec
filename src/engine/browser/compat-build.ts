import { IMAGE_SHA256 } from "../../../wasm/engine-image.ts";

/**
 * wllama's build of llama.cpp for browsers without memory64 or JSPI (Safari): 32-bit, with Asyncify, and with the stock
 * kernels instead of Daybreak's. It requires only the WebAssembly features threads and relaxed SIMD.
 */
export interface CompatBuild {
  readonly wasmUrl: string;
  readonly scriptUrl: string;
}

/** SHA-256 of the WebAssembly of this build. */
export const COMPAT_SHA256 = "2db3f67d0bcc19cdf8f14f129e46cab691bff898954808f8a2dc4c586eb5bb68";

/** True if this browser needs the compatibility build. wllama applies the same condition. */
function needsCompat(): boolean {
  return !("Suspending" in WebAssembly) || !hasMemory64();
}

function hasMemory64(): boolean {
  // A module with one memory of 64-bit addresses.
  return WebAssembly.validate(new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 5, 3, 1, 4, 1]));
}

/** The build of llama.cpp for this browser. */
export const PAGE_BUILD = needsCompat()
  ? ({ isCompat: true, sha256: COMPAT_SHA256, heapBytes: 4 * 1024 ** 3, kernels: "stock" } as const)
  : ({ isCompat: false, sha256: IMAGE_SHA256, heapBytes: 16 * 1024 ** 3, kernels: "daybreak" } as const);
