import { stat } from "node:fs/promises";
import os from "node:os";
import { isSystemError } from "../errors/exhausted-resource.ts";
import { type PreparedEngine, prepareEngine, type PrepareEngineOptions } from "./prepare-engine.ts";

/** Where the image is kept when the cache folder cannot be written to; the last is memory. */
export function fallbackFolders(env: NodeJS.ProcessEnv = process.env): readonly string[] {
  const folders = [
    env["XDG_RUNTIME_DIR"],
    os.tmpdir(),
    process.platform === "linux" ? "/dev/shm" : undefined,
  ];
  return [...new Set(folders.flatMap((folder) => folder || []))];
}

/** The engine's image as long as a daemon runs: made again when somebody has removed or changed it. */
export class EngineImage {
  readonly #options: PrepareEngineOptions;
  readonly #onProblem: (problem: string) => void;
  #prepared: PreparedEngine;
  /** Of the file when it was found to be whole. */
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

  /** @param onProblem hears every time that the image is not where, or what, it should be */
  static async prepare(
    options: PrepareEngineOptions,
    onProblem: (problem: string) => void,
  ): Promise<EngineImage> {
    const image = new EngineImage(options, onProblem, await prepareEngine(options));
    await image.#note();
    return image;
  }

  /** As it was prepared last. */
  get prepared(): PreparedEngine {
    return this.#prepared;
  }

  /** The image, whole; made again first where it has to be. */
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

/** Differs for each file that has had this name; undefined where there is none. */
async function versionOf(file: string): Promise<string | undefined> {
  try {
    const { ino, size, mtimeNs } = await stat(file, { bigint: true });
    return `${ino}:${size}:${mtimeNs}`;
  } catch (error) {
    if (isSystemError(error) && (error.code === "ENOENT" || error.code === "ENOTDIR")) return undefined;
    throw error;
  }
}
