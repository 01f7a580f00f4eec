import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { IMAGE_HEAP_BYTES } from "../../wasm/changes.ts";
import { buildEngineImage, EngineImageError, IMAGE_SHA256, sha256Hex } from "../../wasm/engine-image.ts";
import { isSystemError } from "../errors/service-error.ts";
import { removeFile, replaceFile, writeRefusal } from "../files/file-operations.ts";
import { isRunning } from "./child-process.ts";
import { STOCK_HEAP_BYTES } from "./core/worker-patches.ts";

/** Folders for the image when the cache folder is not writable; the last one is in memory. */
export function fallbackFolders(
  env: Readonly<Record<string, string | undefined>> = process.env,
): readonly string[] {
  const folders = [
    env["XDG_RUNTIME_DIR"],
    os.tmpdir(),
    process.platform === "linux" ? "/dev/shm" : undefined,
  ];
  return [...new Set(folders.flatMap((folder) => folder || []))];
}

/** Engine image of a running daemon; rebuilt if the file is removed or changed. */
export class EngineImage {
  readonly #options: PrepareEngineOptions;
  readonly #onProblem: (problem: string) => void;
  #prepared!: PreparedEngine;
  /** State of the file when it was last verified. */
  #version: string | undefined;
  #rebuilding: Promise<PreparedEngine> | undefined;

  private constructor(options: PrepareEngineOptions, onProblem: (problem: string) => void) {
    this.#options = options;
    this.#onProblem = onProblem;
  }

  /** @param onProblem called each time that a fallback folder or the stock engine is used */
  static async prepare(
    options: PrepareEngineOptions,
    onProblem: (problem: string) => void,
  ): Promise<EngineImage> {
    const image = new EngineImage(options, onProblem);
    await image.#build();
    return image;
  }

  get prepared(): PreparedEngine {
    return this.#prepared;
  }

  /** The intact image, rebuilt if necessary. */
  async ensure(): Promise<PreparedEngine> {
    if (this.#prepared.kernels === "stock" && this.#options.kernels === "stock") return this.#prepared;
    if (this.#version !== undefined && (await versionOf(this.#prepared.wasmPath)) === this.#version) {
      return this.#prepared;
    }
    this.#rebuilding ??= this.#build().finally(() => (this.#rebuilding = undefined));
    return await this.#rebuilding;
  }

  async #build(): Promise<PreparedEngine> {
    this.#prepared = await prepareEngine(this.#options);
    this.#version = await versionOf(this.#prepared.wasmPath);
    if (this.#prepared.problem !== undefined) this.#onProblem(this.#prepared.problem);
    return this.#prepared;
  }
}

/** Identifies a state of a file; undefined when the file does not exist. */
async function versionOf(file: string): Promise<string | undefined> {
  try {
    const { ino, size, mtimeNs } = await stat(file, { bigint: true });
    return `${ino}:${size}:${mtimeNs}`;
  } catch (error) {
    if (isSystemError(error) && (error.code === "ENOENT" || error.code === "ENOTDIR")) return undefined;
    throw error;
  }
}

/** llama.cpp's WebAssembly as @wllama/wllama ships it. */
export const STOCK_WASM_PATH = fileURLToPath(import.meta.resolve("@wllama/wllama/esm/wasm/wllama.wasm"));

export type Kernels = "daybreak" | "stock";

export interface PreparedEngine {
  readonly wasmPath: string;
  readonly kernels: Kernels;
  /** Largest heap of one engine, in bytes. */
  readonly heapLimitBytes: number;
  /** Sentence for the log when a fallback folder or the stock engine is used. */
  readonly problem?: string;
}

interface PrepareEngineOptions {
  /** The image is cached in a subfolder. */
  readonly cacheDir: string;
  /** auto: our kernels, or the stock engine if the image cannot be built; stock: never our kernels. */
  readonly kernels: "auto" | "stock";
  readonly stockPath?: string;
  /** Folders in which this process makes a private folder for the image when the cache folder is not writable. */
  readonly fallbacks?: readonly string[];
}

/** Built by wasm/kernels/build.sh; two folders up from src/engine and from dist/src/engine alike. */
const KERNELS = new URL("../../wasm/kernels.o", import.meta.url);

/**
 * Finds the engine image in the cache folder or builds it there. An image with an unexpected hash is rebuilt, so that an
 * incomplete or modified file is never run. Images of other versions are removed when no daemon uses them.
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
    return { ...ours, wasmPath: await findOrBuildImage(folder, stockPath) };
  } catch (error) {
    const reason = fallbackReason(error);
    for (const fallback of error instanceof EngineImageError ? [] : fallbacks) {
      try {
        const wasmPath = await findOrBuildImage(privateFolder(fallback), stockPath);
        const problem = `The engine is kept in ${path.dirname(wasmPath)} until the daemon exits, because it cannot be kept in ${folder}: ${reason}.`;
        return { ...ours, wasmPath, problem };
      } catch (other) {
        fallbackReason(other); // rethrows errors that are not about the folder
      }
    }
    return { ...stock, problem: `Models run slowly, with llama.cpp's own kernels: ${reason} (${folder}).` };
  }
}

/** @throws the error itself when it is neither a failed write nor a wrong package */
function fallbackReason(error: unknown): string {
  const refusal = error instanceof EngineImageError ? error.message : writeRefusal(error);
  if (refusal === undefined) throw error;
  return refusal;
}

/** @returns path of the intact image */
async function findOrBuildImage(folder: string, stockPath: string): Promise<string> {
  const wasmPath = path.join(folder, `${IMAGE_SHA256}.wasm`);
  const found = await isIntact(wasmPath);
  try {
    await markUsed(folder, IMAGE_SHA256);
    if (!found) {
      await writeAtomically(
        wasmPath,
        await buildEngineImage(await readFile(stockPath), await readFile(KERNELS)),
      );
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
async function writeAtomically(file: string, bytes: Uint8Array): Promise<void> {
  const temporary = `${file}.${crypto.randomUUID()}.tmp`;
  try {
    await writeFile(temporary, bytes);
    await replaceFile(temporary, file);
  } catch (error) {
    await removeFile(temporary);
    throw error;
  }
}

/** Age at which a marker of another machine or container that shares the folder expires. */
const FOREIGN_MARKER_MS = 30 * 24 * 60 * 60 * 1000;

const IMAGE = /^([0-9a-f]{64})\.wasm$/;
/** Name of a file that marks an image as used: the image's hash, the host name and the process id. */
const USAGE_MARKER = /^([0-9a-f]{64})\.([^.]*)\.(\d+)\.user$/;

/** Name of an image that is being written. */
const UNFINISHED = /^[0-9a-f]{64}\.wasm\.[0-9a-f-]+\.tmp$/;
/** Much longer than it takes to write an image. */
const UNFINISHED_MAX_AGE_MS = 60_000;

/** A private folder of one process, inside a shared one. */
const PRIVATE = /^daybreak-engine-(\d+)-\w+$/;
const privateFolders = new Map<string, string>();

/** Marker files and private folders of this process; removed when it exits, or else by the next daemon. */
const temporaryFiles = new Set<string>();

function removeAtExit(file: string): void {
  if (temporaryFiles.size === 0) process.once("exit", () => temporaryFiles.forEach(removeQuietly));
  temporaryFiles.add(file);
}

/**
 * Marks an image as used by this process, whose engines read it whenever a model is loaded.
 * @param folder holds the images; created when missing
 */
async function markUsed(folder: string, hash: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const mark = path.join(folder, `${hash}.${hostName()}.${process.pid}.user`);
  await writeFile(mark, "");
  removeAtExit(mark);
}

/** Removes images of other versions that no daemon uses, and markers of daemons that have ended. */
async function removeUnused(folder: string, currentHash: string): Promise<void> {
  const files = await readdir(folder);
  const used = new Set([currentHash]);
  for (const file of files) {
    const [, hash, host, pid] = USAGE_MARKER.exec(file) ?? [];
    if (hash === undefined) continue;
    const mark = path.join(folder, file);
    if (await isInUse(mark, host ?? "", Number(pid))) used.add(hash);
    else await removeFile(mark);
  }
  for (const file of files.filter((name) => UNFINISHED.test(name))) {
    const unfinished = path.join(folder, file);
    if (await isOlderThan(unfinished, UNFINISHED_MAX_AGE_MS)) await removeFile(unfinished);
  }
  for (const file of files) {
    const hash = IMAGE.exec(file)?.[1];
    if (hash !== undefined && !used.has(hash)) await removeFile(path.join(folder, file));
  }
}

async function isInUse(mark: string, host: string, pid: number): Promise<boolean> {
  if (host === hostName()) return isRunning(pid);
  return !(await isOlderThan(mark, FOREIGN_MARKER_MS));
}

/** Also true for a file that no longer exists. */
async function isOlderThan(file: string, millis: number): Promise<boolean> {
  const stats = await stat(file).catch(() => undefined);
  return stats === undefined || Date.now() - stats.mtimeMs >= millis;
}

/**
 * Makes a folder for this process inside a shared one, readable only by this user. Removes such folders of processes
 * that were killed.
 */
export function privateFolder(parent: string): string {
  const known = privateFolders.get(parent);
  if (known !== undefined && readable(known)) return known;
  for (const name of readdirSync(parent)) {
    const pid = PRIVATE.exec(name)?.[1];
    if (pid !== undefined && !isRunning(Number(pid))) removeQuietly(path.join(parent, name));
  }
  const folder = mkdtempSync(path.join(parent, `daybreak-engine-${process.pid}-`));
  removeAtExit(folder);
  privateFolders.set(parent, folder);
  return folder;
}

function readable(folder: string): boolean {
  try {
    readdirSync(folder);
    return true;
  } catch {
    return false; // removed by a cleanup of the shared folder
  }
}

function removeQuietly(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch {
    // It belongs to another user.
  }
}

/** Host name without dots, which separate the parts of a marker's name. */
function hostName(): string {
  return os.hostname().replaceAll(/[^\w-]/g, "-");
}
