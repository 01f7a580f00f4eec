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

/** Which kernels an engine uses: ours or llama.cpp's. */
export type Kernels = "daybreak" | "stock";

/** The WebAssembly that engines run. */
export interface PreparedEngine {
  readonly wasmPath: string;
  readonly kernels: Kernels;
  /** Largest heap of one engine, in bytes. */
  readonly heapLimitBytes: number;
  /** A sentence for the log when the image is kept elsewhere or the stock engine replaces it. */
  readonly problem?: string;
}

export interface PrepareEngineOptions {
  /** The image is cached in a subfolder. */
  readonly cacheDir: string;
  /** auto: our kernels, or the stock engine when the image cannot be built; stock: never our kernels. */
  readonly kernels: "auto" | "stock";
  readonly stockPath?: string;
  /** Folders for a private folder of this process with the image, when the cache folder is not writable. */
  readonly fallbacks?: readonly string[];
}

/** Built by wasm/kernels/build.sh; two folders up from src/engine and from dist/src/engine alike. */
const KERNELS = new URL("../../wasm/kernels.o", import.meta.url);

/**
 * Finds the engine image in the cache folder or builds it there. An image with another hash than expected is rebuilt,
 * so that an incomplete or modified file is never run. Images of other versions are removed when no daemon uses them
 * anymore.
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
        const problem = `The engine is kept in ${path.dirname(wasmPath)} until the daemon exits, because it cannot be kept in ${folder}: ${reason}.`;
        return { ...ours, wasmPath, problem };
      } catch (other) {
        reasonOf(other); // rethrows errors that are not about the folder
      }
    }
    return { ...stock, problem: `Models run slowly, with llama.cpp's own kernels: ${reason} (${folder}).` };
  }
}

/** @throws the error itself when it is neither a failed write nor a wrong package */
function reasonOf(error: unknown): string {
  const refusal = error instanceof EngineImageError ? error.message : writeRefusal(error);
  if (refusal === undefined) throw error;
  return refusal;
}

/** @returns path of the intact image */
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
    // An intact image can be used even when the folder is not writable.
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

/** Writes atomically, even when two daemons write the file at the same time. */
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
