import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, readFile, realpath, stat, writeFile } from "node:fs/promises";
import nodePathPath from "node:path";
import { z } from "zod";
import { IMAGE_SHA256 } from "../../../wasm/engine-image.ts";
import { STOCK_SHA256 } from "../../../wasm/llama-cpp-build.ts";
import { abortable } from "../../async/promises.ts";
import type { Kernels } from "../../engine/engine-image.ts";
import type { EngineSpec } from "../../engine/protocol/engine-spec.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { removeFile, replaceFile } from "../../files/file-operations.ts";
import type { SavedHeader } from "./saved-header.ts";

/** What must be the same for a state to mean the same. */
export type SlotIdentity = Pick<SavedHeader, "model" | "engine" | "settings">;

/** The files that decide what a model computes of a text: with other adapters it is another model. */
export function computingFiles({ modelFiles, adapters }: EngineSpec): readonly string[] {
  return [...modelFiles, ...adapters.map(({ path }) => path)];
}

/** @param model SHA-256 of the {@link computingFiles} */
export function slotIdentity(model: string, kernels: Kernels, spec: EngineSpec): SlotIdentity {
  return {
    model,
    engine: kernels === "stock" ? STOCK_SHA256 : IMAGE_SHA256,
    settings: createHash("sha256").update(settingsText(spec)).digest("hex"),
  };
}

/** All of an engine's settings but those that leave what it computes of a text as it is; new ones count until they are listed. */
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

export function isSame(saved: SlotIdentity, now: SlotIdentity): boolean {
  return saved.model === now.model && saved.engine === now.engine && saved.settings === now.settings;
}

/** @throws ServiceError slot_state_mismatch when a saved prompt is not one of this model as it is loaded */
export function checkIdentity(name: string, saved: SavedHeader, now: SlotIdentity): void {
  if (isSame(saved, now)) return;
  const what =
    saved.model !== now.model
      ? "of another model file, or of other adapters"
      : saved.engine !== now.engine
        ? "of another version of the engine"
        : "of other load settings";
  throw new ServiceError(
    "slot_state_mismatch",
    `The saved prompt ${JSON.stringify(name)} is ${what}, so the model cannot use it; delete it and save again.`,
  );
}

/** Hashes kept on disk; more models than anybody uses on one machine. */
const MAX_KNOWN = 256;

/** Files of the hub's cache and of uploads are named by their SHA-256, which was checked when they were written. */
const NAMED_BY_HASH = /^(?:sha256-)?([0-9a-f]{64})(?:\.gguf)?$/;

const knownSchema = z.record(z.string().max(8192), z.string().regex(/^[0-9a-f]{64}$/));

/** SHA-256 of model files. A large file takes seconds, so hashes are remembered, as long as size and time stay the same. */
export class ModelHashes {
  readonly #file: string;
  readonly #running = new Map<string, Promise<string>>();
  readonly #closing = new AbortController();

  /** @param file remembers hashes; created when there are some */
  constructor(file: string) {
    this.#file = file;
  }

  /** Ends what is being computed. */
  close(): void {
    this.#closing.abort();
  }

  /** One hash for all files of a model, in their order. */
  async of(files: readonly string[], signal: AbortSignal): Promise<string> {
    const hashes: string[] = [];
    for (const file of files) hashes.push(await this.#hashOf(await realpath(file), signal));
    return hashes.length === 1 ? hashes[0]! : createHash("sha256").update(hashes.join("")).digest("hex");
  }

  async #hashOf(file: string, signal: AbortSignal): Promise<string> {
    const named = NAMED_BY_HASH.exec(nodePathPath.basename(file))?.[1];
    if (named !== undefined) return named;
    const { size, mtimeMs, ino } = await stat(file);
    const key = `${file}:${size}:${mtimeMs}:${ino}`;
    const known = (await this.#known())[key];
    if (known !== undefined) return known;
    const running =
      this.#running.get(key) ?? this.#compute(file, key).finally(() => this.#running.delete(key));
    this.#running.set(key, running);
    return await abortable(running, signal);
  }

  async #compute(file: string, key: string): Promise<string> {
    const hash = createHash("sha256");
    for await (const piece of createReadStream(file, { signal: this.#closing.signal })) hash.update(piece);
    const digest = hash.digest("hex");
    await this.#remember(key, digest);
    return digest;
  }

  async #known(): Promise<Record<string, string>> {
    try {
      return knownSchema.parse(JSON.parse(await readFile(this.#file, "utf8")));
    } catch {
      return {}; // not there yet, or damaged: hashes are computed again
    }
  }

  async #remember(key: string, digest: string): Promise<void> {
    const known = { ...(await this.#known()), [key]: digest };
    const kept = Object.fromEntries(Object.entries(known).slice(-MAX_KNOWN));
    const partial = `${this.#file}.${crypto.randomUUID()}.partial`;
    try {
      await mkdir(nodePathPath.dirname(this.#file), { recursive: true, mode: 0o700 });
      await writeFile(partial, JSON.stringify(kept), { mode: 0o600 });
      await replaceFile(partial, this.#file);
    } catch {
      await removeFile(partial).catch(() => undefined); // it is only computed again
    }
  }
}
