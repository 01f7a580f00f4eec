import { BARRIER_SPLICES } from "./barriers.ts";
import { link } from "./linker/link.ts";
import { parseModule } from "./linker/wasm-module.ts";
import { OPERATOR_SPLICE } from "./operators.ts";
import { VEC_DOTS } from "./vec-dots.ts";

/**
 * What is changed in llama.cpp's WebAssembly, as @wllama/wllama ships it, to make our engine of it. Indices and
 * layouts belong to one build, so everything is pinned by hash: of another file nothing is made, and the stock
 * engine runs.
 */

/** SHA-256 of esm/wasm/wllama.wasm in @wllama/wllama 3.8.1 (llama.cpp b11364). */
export const STOCK_SHA256 = "551f13439366eff11e057b1b91fe46a7fdac29d56d67372d4c5f19a549dfe70c";
/** SHA-256 of wasm/kernels.o, which wasm/kernels/build.sh makes. */
export const KERNELS_SHA256 = "ae85846a9106cd6cdc1f741f20ec1e3d73844ed74c7da6f7a2853a1e9a072528";
/** SHA-256 of what {@link buildEngineImage} makes of the two: a copy that was kept is used as long as it is this. */
export const IMAGE_SHA256 = "f717c404c0a8304d18a26ce7dd74accb7204b9a01679a623f63511f356849661";

const PAGE_BYTES = 64 * 1024;

/** Largest heap of our engine: V8 takes no more. */
export const IMAGE_HEAP_BYTES = 16 * 1024 ** 3;

interface PinnedFunction {
  readonly index: number;
  /** As the package's symbol map has it. */
  readonly name: string;
  /** SHA-256 of the body. */
  readonly sha256: string;
}

/** Functions of the stock module that ours refer to. */
export const PINNED_FUNCTIONS = {
  mulMat: {
    index: 2028,
    name: "ggml_compute_forward_mul_mat",
    sha256: "08ac6b723340006b1546f28b21a22fea175e9f9da9d443c16c9092e5bf3f4d6d",
  },
  graphPlan: {
    index: 3340,
    name: "__wrap_ggml_graph_plan",
    sha256: "0d6992b17837bc0472b2f32be2fb42b4597d785a89cc95d84d5d9ee9b127b6f1",
  },
  schedReserve: {
    index: 3096,
    name: "ggml_backend_sched_reserve",
    sha256: "77bdcc1f99ec3f1703d918fbfc49e1e111e2afeb7a9df6af84da29fb26f484ed",
  },
  dequantizeQ4_0: {
    index: 7297,
    name: "dequantize_row_q4_0",
    sha256: "b9d73f4b569331007ffde63924277d3710bbe4d82e5d3856aaddc7ed09b5de28",
  },
  dequantizeQ8_0: {
    index: 7290,
    name: "dequantize_row_q8_0",
    sha256: "e9fff903ae0b7fe1e28b75940c803453268383deb21c66d3bb00c3017c876060",
  },
  dequantizeQ4_K: {
    index: 7295,
    name: "dequantize_row_q4_K",
    sha256: "36ec93c4e89ad5a31aec58c93db3f50c3b458c60803a0500dba0ee5857f0c994",
  },
  dequantizeQ6_K: {
    index: 7291,
    name: "dequantize_row_q6_K",
    sha256: "3584fa7705daf8aa963d2e9b466af259b5ce64dfcfcebae3351f55bd5628a4b5",
  },
  barrier: {
    index: 270,
    name: "ggml_barrier",
    sha256: "1b11245c9a5f03b38643c7909098dd33e20a0d51ab238ec545e3a02a001418a0",
  },
  graphThread: {
    index: 3053,
    name: "ggml_graph_compute_thread",
    sha256: "e6f62651522fc9a34d05f01d8e7822b559378ea7a30e030ca90591a16eabf821",
  },
  secondaryThread: {
    index: 7124,
    name: "ggml_graph_compute_secondary_thread",
    sha256: "c405b03e41b858822667f4b45842bd565e206453cf3f7ee588c68a2b559bd976",
  },
  swiglu: {
    index: 3035,
    name: "ggml_vec_swiglu_f32",
    sha256: "beac4ddc659b24423127d1ffc882e15f4982d84bcf62e589df11073018d62fe6",
  },
  updateSlots: {
    index: 5762,
    name: "server_context_impl::update_slots()",
    sha256: "2acad40cad75ee13e025cc6e6b5803592b43ccb50f761c09433d82b5ccda9fdd",
  },
  tokenize: {
    index: 1272,
    name: "llama_vocab::tokenize",
    sha256: "c7536e4edf8243d7f76a2b6add8b2a88bfa4563f5889059f0c5f1ab73911d2d2",
  },
  tokenToPiece: {
    index: 956,
    name: "llama_vocab::token_to_piece",
    sha256: "cf9da726ad03e54e0ba112be8273242b1caaf031fc1c0b63fff309debbae7a52",
  },
} as const satisfies Record<string, PinnedFunction>;

/** Name by which the engine's script calls a function of llama.cpp's that the stock module keeps to itself → index. */
export const ADDED_EXPORTS = {
  daybreak_tokenize: PINNED_FUNCTIONS.tokenize.index,
  daybreak_token_to_piece: PINNED_FUNCTIONS.tokenToPiece.index,
} as const;

/** The input is not what the changes were made for. */
export class EngineImageError extends Error {
  override readonly name = "EngineImageError";
}

/**
 * Makes our engine from the stock module: matrix products run in our kernels, and llama.cpp's own code stays
 * reachable for what they do not cover; the heap may grow to {@link IMAGE_HEAP_BYTES}; the tokeniser can be called.
 *
 * @throws EngineImageError when a file or a function is not the pinned one
 */
export async function buildEngineImage(
  stock: Uint8Array,
  kernels: Uint8Array,
): Promise<Uint8Array<ArrayBuffer>> {
  await expectHash(stock, STOCK_SHA256, "llama.cpp's WebAssembly");
  await expectHash(kernels, KERNELS_SHA256, "the kernels");
  const { importedFunctions, bodies } = parseModule(stock);
  const pinned: readonly PinnedFunction[] = [...Object.values(PINNED_FUNCTIONS), ...VEC_DOTS];
  for (const { index, name, sha256 } of pinned) {
    await expectHash(bodies[index - importedFunctions] ?? new Uint8Array(), sha256, name);
  }
  const { mulMat, graphPlan, schedReserve, barrier, secondaryThread, swiglu, updateSlots } = PINNED_FUNCTIONS;
  return link(stock, {
    object: kernels,
    replace: {
      kernel_mul_mat: mulMat.index,
      kernel_graph_plan: graphPlan.index,
      kernel_sched_reserve: schedReserve.index,
      kernel_barrier: barrier.index,
      kernel_secondary_thread: secondaryThread.index,
      kernel_swiglu: swiglu.index,
      kernel_update_slots: updateSlots.index,
      ...Object.fromEntries(VEC_DOTS.map(({ kernel, index }) => [kernel, index])),
    },
    originals: {
      original_mul_mat: mulMat.index,
      original_graph_plan: graphPlan.index,
      original_sched_reserve: schedReserve.index,
      original_secondary_thread: secondaryThread.index,
      original_update_slots: updateSlots.index,
    },
    imports: {
      ggml_barrier: barrier.index,
      dequantize_row_q4_0: PINNED_FUNCTIONS.dequantizeQ4_0.index,
      dequantize_row_q8_0: PINNED_FUNCTIONS.dequantizeQ8_0.index,
      dequantize_row_q4_K: PINNED_FUNCTIONS.dequantizeQ4_K.index,
      dequantize_row_q6_K: PINNED_FUNCTIONS.dequantizeQ6_K.index,
    },
    splices: [...BARRIER_SPLICES, OPERATOR_SPLICE],
    exports: ADDED_EXPORTS,
    memoryMaximum: IMAGE_HEAP_BYTES / PAGE_BYTES,
  });
}

async function expectHash(bytes: Uint8Array, expected: string, what: string): Promise<void> {
  const found = await sha256Hex(bytes);
  if (found !== expected)
    throw new EngineImageError(`${what} is not the one expected: SHA-256 ${found}, not ${expected}`);
}

/** SHA-256 as lower-case hexadecimal digits; the same in Node and in a page. */
export async function sha256Hex(bytes: Uint8Array): Promise<string> {
  // A copy, because bytes in shared memory cannot be hashed.
  const digest = await crypto.subtle.digest("SHA-256", new Uint8Array(bytes));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
