import { CHANGES } from "./changes.ts";
import { link } from "./linker/link.ts";
import { parseObject } from "./linker/object-file.ts";
import { KIND, parseModule } from "./linker/wasm-module.ts";
import { FUNCTIONS, STOCK_SHA256 } from "./llama-cpp-build.ts";

/**
 * Builds our engine from llama.cpp's WebAssembly in @wllama/wllama. Indices and layouts belong to one build, so the inputs
 * are pinned by hash: with any other file, the stock engine runs instead.
 */

/** SHA-256 of wasm/kernels.o, the output of wasm/kernels/build.sh. */
const KERNELS_SHA256 = "485a959ab278f0b96beab943ca159987ba018de69c079fb1b0f0236a5dff4181";
/** SHA-256 of the result of {@link buildEngineImage}; a cached image is used only if it matches. */
export const IMAGE_SHA256 = "cd943d16bb74c4e1a799032679c101c7c41d7244558c7e6e513939e114141b68";

/** Error for an input that is not the build for which the changes were made. */
export class EngineImageError extends Error {
  override readonly name = "EngineImageError";
}

/**
 * Applies all {@link CHANGES} to the stock module. Our kernels can still call llama.cpp's code where they do not apply.
 *
 * @throws EngineImageError when a file is not the pinned one
 */
export async function buildEngineImage(
  stock: Uint8Array,
  kernels: Uint8Array,
): Promise<Uint8Array<ArrayBuffer>> {
  await expectHash(stock, STOCK_SHA256, "llama.cpp's WebAssembly");
  await expectHash(kernels, KERNELS_SHA256, "the kernels");
  const replace = merged("replace");
  return link(stock, {
    object: kernels,
    replace,
    originals: calledOriginals(kernels, replace),
    imports: { ...merged("imports"), ...scriptCalls(stock) },
    splices: CHANGES.flatMap(({ splices }) => splices ?? []),
    exports: merged("exports"),
    exportedKernels: CHANGES.flatMap(({ exportedKernels }) => exportedKernels ?? []),
    memoryMaximum: Math.max(...CHANGES.map(({ memoryMaximum }) => memoryMaximum ?? 0)),
  });
}

function merged(field: "replace" | "imports" | "exports"): Record<string, number> {
  const entries = CHANGES.flatMap((change) => Object.entries(change[field] ?? {}));
  return Object.fromEntries(entries.map(([name, stock]) => [name, FUNCTIONS[stock]]));
}

/** Functions of llama.cpp's script that kernels call: their indices among the imported ones. */
function scriptCalls(stock: Uint8Array): Record<string, number> {
  const imported = parseModule(stock).imports.filter(({ kind }) => kind === KIND.function);
  const calls = CHANGES.flatMap((change) => Object.entries(change.scriptCalls ?? {}));
  return Object.fromEntries(
    calls.map(([name, from]) => {
      const index = imported.findIndex((each) => each.name === from);
      if (index < 0) throw new TypeError(`the module imports no ${from}`);
      return [name, index];
    }),
  );
}

/** Replaced functions that kernels still call: kernel_x calls original_x. */
function calledOriginals(
  kernels: Uint8Array,
  replace: Readonly<Record<string, number>>,
): Record<string, number> {
  const called = new Set(parseObject(kernels).symbols.flatMap(({ name, defined }) => (defined ? [] : name)));
  const originals = Object.entries(replace).map(
    ([kernel, index]) => [kernel.replace(/^kernel_/, "original_"), index] as const,
  );
  return Object.fromEntries(originals.filter(([name]) => called.has(name)));
}

/** @throws EngineImageError when the bytes have another SHA-256 */
export async function expectHash(bytes: Uint8Array, expected: string, what: string): Promise<void> {
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
