import { IMAGE_SHA256 } from "../../../wasm/engine-image.ts";

/**
 * The package's build of llama.cpp for browsers without memory64 or JSPI (Safari): 32-bit, suspended by Asyncify, and with
 * llama.cpp's own kernels instead of ours. It needs no WebAssembly newer than threads and relaxed SIMD.
 */
export interface CompatBuild {
  /** Address of its WebAssembly. */
  readonly wasmUrl: string;
  /** Address of its script. */
  readonly scriptUrl: string;
}

/** SHA-256 of its WebAssembly. */
export const COMPAT_SHA256 = "2db3f67d0bcc19cdf8f14f129e46cab691bff898954808f8a2dc4c586eb5bb68";

/** Whether this browser needs it; wllama asks the same. */
function needsCompat(): boolean {
  return !("Suspending" in WebAssembly) || !hasMemory64();
}

function hasMemory64(): boolean {
  // A module with one memory of 64-bit addresses.
  return WebAssembly.validate(new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 5, 3, 1, 4, 1]));
}

/** The build of llama.cpp that this browser can run. */
export const PAGE_BUILD = needsCompat()
  ? ({ isCompat: true, sha256: COMPAT_SHA256, heapBytes: 4 * 1024 ** 3, kernels: "stock" } as const)
  : ({ isCompat: false, sha256: IMAGE_SHA256, heapBytes: 16 * 1024 ** 3, kernels: "daybreak" } as const);
