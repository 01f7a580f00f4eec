import { stat } from "node:fs/promises";
import os from "node:os";
import { isSystemError } from "../errors/exhausted-resource.ts";
import { type PreparedEngine, prepareEngine, type PrepareEngineOptions } from "./prepare-engine.ts";

/** Where the image is kept when the cache folder is not writable; the last one is in memory. */
export function fallbackFolders(env: NodeJS.ProcessEnv = process.env): readonly string[] {
  const folders = [
    env["XDG_RUNTIME_DIR"],
    os.tmpdir(),
    process.platform === "linux" ? "/dev/shm" : undefined,
  ];
  return [...new Set(folders.flatMap((folder) => folder || []))];
}

/** The engine image while a daemon runs; rebuilt when somebody has removed or changed it. */
export class EngineImage {
  readonly #options: PrepareEngineOptions;
  readonly #onProblem: (problem: string) => void;
  #prepared: PreparedEngine;
  /** Version of the file when it was last verified. */
  #version: string | undefined;
  #renewal: Promise<PreparedEngine> | undefined;

  private constructor(
    options: PrepareEngineOptions,
    onProblem: (problem: string) => void,
    prepared: PreparedEngine,
  ) {
    this.#options = options;
    this.#onProblem = onProblem;
    this.#prepared = prepared;
  }

  /** @param onProblem called each time that the image is kept elsewhere, or the stock engine replaces it */
  static async prepare(
    options: PrepareEngineOptions,
    onProblem: (problem: string) => void,
  ): Promise<EngineImage> {
    const image = new EngineImage(options, onProblem, await prepareEngine(options));
    await image.#note();
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
    this.#renewal ??= this.#renew().finally(() => (this.#renewal = undefined));
    return await this.#renewal;
  }

  async #renew(): Promise<PreparedEngine> {
    this.#prepared = await prepareEngine(this.#options);
    await this.#note();
    return this.#prepared;
  }

  async #note(): Promise<void> {
    this.#version = await versionOf(this.#prepared.wasmPath);
    if (this.#prepared.problem !== undefined) this.#onProblem(this.#prepared.problem);
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
