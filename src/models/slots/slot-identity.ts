import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, readFile, realpath, stat, writeFile } from "node:fs/promises";
import nodePath from "node:path";
import { z } from "zod";
import { IMAGE_SHA256 } from "../../../wasm/engine-image.ts";
import { STOCK_SHA256 } from "../../../wasm/llama-cpp-build.ts";
import { abortable } from "../../async/promises.ts";
import type { Kernels } from "../../engine/engine-image.ts";
import type { EngineSpec } from "../../engine/protocol/engine-spec.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { removeFile, replaceFile } from "../../files/file-operations.ts";
import { tryJson } from "../../json/json-values.ts";
import type { SavedHeader } from "./saved-header.ts";

/** Hashes that must match for a saved state to be valid. */
export type SlotIdentity = Pick<SavedHeader, "model" | "engine" | "settings">;

/** Returns the files that determine what a model computes: its weights and adapters. */
export function identityFiles({ modelFiles, adapters }: EngineSpec): readonly string[] {
  return [...modelFiles, ...adapters.map(({ path }) => path)];
}

/** @param model SHA-256 of the {@link identityFiles} */
export function slotIdentity(model: string, kernels: Kernels, spec: EngineSpec): SlotIdentity {
  return {
    model,
    engine: kernels === "stock" ? STOCK_SHA256 : IMAGE_SHA256,
    settings: createHash("sha256").update(settingsText(spec)).digest("hex"),
  };
}

/** Returns the engine settings that change what the model computes, as text. Settings not listed here count as such. */
function settingsText(spec: EngineSpec): string {
  const {
    modelFiles: _modelFiles,
    projectorFile: _projectorFile,
    hearsAudio: _hearsAudio,
    adapters: _adapters,
    contextSize: _contextSize,
    sharedContext: _sharedContext,
    gpuLayers: _gpuLayers,
    gpu: _gpu,
    slots: _slots,
    promptCacheBytes: _promptCacheBytes,
    guessTokens: _guessTokens,
    threads: _threads,
    batchSize: _batchSize,
    chatTemplate: _chatTemplate,
    contextShift: _contextShift,
    ...settings
  } = spec;
  const sorted = Object.entries(settings).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(sorted);
}

export function isSameIdentity(saved: SlotIdentity, now: SlotIdentity): boolean {
  return saved.model === now.model && saved.engine === now.engine && saved.settings === now.settings;
}

/** @throws ServiceError slot_state_mismatch if a saved prompt is not from this model with these settings */
export function checkIdentity(name: string, saved: SavedHeader, now: SlotIdentity): void {
  if (isSameIdentity(saved, now)) return;
  const difference =
    saved.model !== now.model
      ? "of another model file, or of other adapters"
      : saved.engine !== now.engine
        ? "of another version of the engine"
        : "of other load settings";
  throw new ServiceError(
    "slot_state_mismatch",
    `The saved prompt ${JSON.stringify(name)} is ${difference}, so the model cannot use it; delete it and save again.`,
  );
}

/** Maximum hashes stored on disk, above the number of models on any machine. */
const MAX_STORED_HASHES = 256;

/** Names of files in the hub cache and of uploads, which are named by their verified SHA-256. */
const NAMED_BY_HASH = /^(?:sha256-)?([0-9a-f]{64})(?:\.gguf)?$/;

const hashesSchema = z.record(z.string().max(8192), z.string().regex(/^[0-9a-f]{64}$/));

/** SHA-256 of model files. A large file takes seconds, so hashes are stored until a file's size or time changes. */
export class ModelHashes {
  readonly #file: string;
  readonly #running = new Map<string, Promise<string>>();
  readonly #closing = new AbortController();

  /** @param file path of the stored hashes, created with the first one */
  constructor(file: string) {
    this.#file = file;
  }

  /** Aborts hashes that are being computed. */
  close(): void {
    this.#closing.abort();
  }

  /** Returns one hash for all files of a model, in their order. */
  async of(files: readonly string[], signal: AbortSignal): Promise<string> {
    const hashes: string[] = [];
    for (const file of files) hashes.push(await this.#hashOf(await realpath(file), signal));
    return hashes.length === 1 ? hashes[0]! : createHash("sha256").update(hashes.join("")).digest("hex");
  }

  async #hashOf(file: string, signal: AbortSignal): Promise<string> {
    const named = NAMED_BY_HASH.exec(nodePath.basename(file))?.[1];
    if (named !== undefined) return named;
    const { size, mtimeMs, ino } = await stat(file);
    const key = `${file}:${size}:${mtimeMs}:${ino}`;
    const known = (await this.#storedHashes())[key];
    if (known !== undefined) return known;
    const running =
      this.#running.get(key) ?? this.#compute(file, key).finally(() => this.#running.delete(key));
    this.#running.set(key, running);
    return await abortable(running, signal);
  }

  async #compute(file: string, key: string): Promise<string> {
    const hash = createHash("sha256");
    for await (const chunk of createReadStream(file, { signal: this.#closing.signal })) hash.update(chunk);
    const digest = hash.digest("hex");
    await this.#store(key, digest);
    return digest;
  }

  async #storedHashes(): Promise<Record<string, string>> {
    // Hashes in a file that does not exist or is damaged are computed again.
    const text = await readFile(this.#file, "utf8").catch(() => "");
    return hashesSchema.safeParse(tryJson(text)).data ?? {};
  }

  async #store(key: string, digest: string): Promise<void> {
    const known = { ...(await this.#storedHashes()), [key]: digest };
    const newest = Object.fromEntries(Object.entries(known).slice(-MAX_STORED_HASHES));
    const partial = `${this.#file}.${crypto.randomUUID()}.partial`;
    try {
      await mkdir(nodePath.dirname(this.#file), { recursive: true, mode: 0o700 });
      await writeFile(partial, JSON.stringify(newest), { mode: 0o600 });
      await replaceFile(partial, this.#file);
    } catch {
      await removeFile(partial).catch(() => undefined); // the hash is computed again next time
    }
  }
}
