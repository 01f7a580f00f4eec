import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { isSystemError } from "../errors/exhausted-resource.ts";
import { IMAGE_HEAP_BYTES } from "../../wasm/changes.ts";
import { buildEngineImage, EngineImageError, IMAGE_SHA256, sha256Hex } from "../../wasm/engine-image.ts";
import { removeFile } from "../files/remove-file.ts";
import { replaceFile } from "../files/replace-file.ts";
import { writeRefusal } from "../files/write-refusal.ts";
import { markUsed, privateFolder, removeUnused } from "./engine-image-store.ts";
import { STOCK_HEAP_BYTES } from "./core/heap-patches.ts";

/** llama.cpp's WebAssembly as @wllama/wllama ships it. */
export const STOCK_WASM_PATH = fileURLToPath(import.meta.resolve("@wllama/wllama/esm/wasm/wllama.wasm"));

/** Which code multiplies matrices in an engine: ours, or llama.cpp's as it was compiled. */
export type Kernels = "daybreak" | "stock";

/** The WebAssembly that engines run. */
export interface PreparedEngine {
  readonly wasmPath: string;
  readonly kernels: Kernels;
  /** Most memory that one engine can have for its model. */
  readonly heapLimitBytes: number;
  /** What is not as it should be: the image lies elsewhere, or the stock engine runs. A sentence, to be logged. */
  readonly problem?: string;
}

export interface PrepareEngineOptions {
  /** The image is cached here, in its own folder. */
  readonly cacheDir: string;
  /** auto: ours, and the stock engine when ours cannot be made; stock: never ours. */
  readonly kernels: "auto" | "stock";
  readonly stockPath?: string;
  /** Folders to keep it in, in one of this process's own, where the cache folder cannot be written to. */
  readonly fallbacks?: readonly string[];
}

/** Built by wasm/kernels/build.sh; two folders up from src/engine and from dist/src/engine alike. */
const KERNELS = new URL("../../wasm/kernels.o", import.meta.url);

/**
 * Finds the engine's image in the cache folder, or makes it there: a tenth of a second, once. A copy whose hash is
 * not the expected one is made anew, so that neither a cut write nor a changed file is ever run. Images of other
 * versions are removed when no daemon uses them any more.
 */
export async function prepareEngine({
  cacheDir,
  kernels,
  stockPath = STOCK_WASM_PATH,
  fallbacks = [],
}: PrepareEngineOptions): Promise<PreparedEngine> {
  const stock: PreparedEngine = { wasmPath: stockPath, kernels: "stock", heapLimitBytes: STOCK_HEAP_BYTES };
  if (kernels === "stock") return stock;
  const ours = { kernels: "daybreak", heapLimitBytes: IMAGE_HEAP_BYTES } as const;
  const folder = path.join(cacheDir, "engine");
  try {
    return { ...ours, wasmPath: await imageIn(folder, stockPath) };
  } catch (error) {
    const reason = reasonOf(error);
    for (const fallback of error instanceof EngineImageError ? [] : fallbacks) {
      try {
        const wasmPath = await imageIn(privateFolder(fallback), stockPath);
        const problem = `The engine is kept in ${path.dirname(wasmPath)} until the daemon ends, because it cannot be kept in ${folder}: ${reason}.`;
        return { ...ours, wasmPath, problem };
      } catch (other) {
        reasonOf(other); // rethrows what is not a failure of the folder
      }
    }
    return { ...stock, problem: `Models run slowly, on llama.cpp's own kernels: ${reason} (${folder}).` };
  }
}

/** @throws what is neither the system's refusal nor a wrong package */
function reasonOf(error: unknown): string {
  const refusal = error instanceof EngineImageError ? error.message : writeRefusal(error);
  if (refusal === undefined) throw error;
  return refusal;
}

/** @returns the image's file, which is whole */
async function imageIn(folder: string, stockPath: string): Promise<string> {
  const wasmPath = path.join(folder, `${IMAGE_SHA256}.wasm`);
  const found = await isIntact(wasmPath);
  try {
    await markUsed(folder, IMAGE_SHA256);
    if (!found) {
      await writeWhole(wasmPath, await buildEngineImage(await readFile(stockPath), await readFile(KERNELS)));
    }
    await removeUnused(folder, IMAGE_SHA256);
  } catch (error) {
    // Where nothing can be written an image that is there serves as well.
    if (!found || !isSystemError(error)) throw error;
  }
  return wasmPath;
}

async function isIntact(file: string): Promise<boolean> {
  try {
    return (await sha256Hex(await readFile(file))) === IMAGE_SHA256;
  } catch (error) {
    if (isSystemError(error) && error.code === "ENOENT") return false;
    throw error;
  }
}

/** Nobody ever sees a part of the file, also when two daemons write it at once. */
async function writeWhole(file: string, bytes: Uint8Array): Promise<void> {
  const temporary = `${file}.${crypto.randomUUID()}.tmp`;
  try {
    await writeFile(temporary, bytes);
    await replaceFile(temporary, file);
  } catch (error) {
    await removeFile(temporary);
    throw error;
  }
}
