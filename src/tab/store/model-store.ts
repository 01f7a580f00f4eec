import { z } from "zod";
import { abortable } from "../../async/promises.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { fileStem } from "../../models/names/model-file-names.ts";
import type { CreateEngineOptions } from "../create-engine.ts";
import { type BlobMessage, type BlobTask, findFile, openBlobs, removeIfExists } from "./blob-folder.ts";
import { fileSchema, type Manifest, readManifests, removeManifest, writeManifest } from "./manifests.ts";
import { hubFiles, hubHeaders, type HubOptions } from "./hub-files.ts";

/** Response of GET /api/models/<name>/files. */
const modelFilesSchema = z.object({
  alias: z.string(),
  modelfile: z.string(),
  files: z.array(fileSchema.extend({ url: z.string() })).min(1),
});

const errorSchema = z.object({ error: z.object({ message: z.string() }) });

/** A model in the browser's storage. */
export interface StoredModel {
  readonly name: string;
  /** Total size of the files, in bytes. */
  readonly size: number;
  /** Stored bytes; less than the size during a download, or after an interrupted one. */
  readonly stored: number;
}

export interface StoreOptions {
  /** Called with the progress, 0 to 1. */
  readonly onProgress?: (progress: number) => void;
  readonly signal?: AbortSignal;
}

export interface DownloadOptions extends StoreOptions {
  /** Address of the daemon. Default: the page's server. */
  readonly daemon?: string | URL;
  /** API key, if the daemon requires one. */
  readonly apiKey?: string;
}

/**
 * Store of models in the browser (in the origin private file system of this site). Models share files with the same
 * SHA-256.
 */
export class ModelStore {
  readonly #worker: string | URL;

  /** @param worker address of the store's worker script; by default the file beside this one */
  constructor({ worker }: { worker?: string | URL } = {}) {
    this.#worker = worker ?? new URL("./store-worker.js", import.meta.url);
  }

  async list(): Promise<StoredModel[]> {
    const blobs = await openBlobs();
    return await Promise.all(
      (await readManifests()).map(async ({ name, files }) => ({
        name,
        size: files.reduce((sum, file) => sum + file.size_bytes, 0),
        stored: (await Promise.all(files.map(async ({ sha256 }) => await storedBytes(blobs, sha256)))).reduce(
          (sum, bytes) => sum + bytes,
          0,
        ),
      })),
    );
  }

  /** Returns the bytes that this site uses and may still use, and whether the browser keeps them if space is scarce. */
  async usage(): Promise<{ used: number; free: number; persistent: boolean }> {
    const { usage = 0, quota = 0 } = await navigator.storage.estimate();
    return { used: usage, free: Math.max(0, quota - usage), persistent: await navigator.storage.persisted() };
  }

  /** Asks the browser to keep the models even if space is scarce. Some browsers ask the user. */
  async persist(): Promise<boolean> {
    return await navigator.storage.persist();
  }

  /**
   * Downloads a model from a daemon. Files that are already stored are reused, and an interrupted download is resumed.
   * @throws ServiceError such as model_not_found, insufficient_disk or download_failed, or the signal's reason
   */
  async download(name: string, options: DownloadOptions = {}): Promise<StoredModel> {
    const { daemon = location.href, apiKey, signal } = options;
    const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
    const address = new URL(`/api/models/${encodeURIComponent(name)}/files`, daemon);
    const answer = await fetch(address, { headers, ...(signal && { signal }) });
    if (!answer.ok) throw await downloadError(name, answer);
    const { modelfile, files } = modelFilesSchema.parse(await answer.json());
    const remote = files.map((file) => ({ ...file, url: new URL(file.url, address).href }));
    return await this.#store({ name, modelfile, files }, remote, headers, options);
  }

  /**
   * Downloads a model from the hub.
   * @param repo owner/repository
   * @param file a GGUF file, or any shard of one; the option `projector` names the multimodal projector
   * @throws ServiceError such as hub_repo_not_found, insufficient_disk or download_failed, or the signal's reason
   */
  async downloadFromHub(
    repo: string,
    file: string,
    options: HubOptions & StoreOptions & { readonly name?: string; readonly projector?: string } = {},
  ): Promise<StoredModel> {
    const files = await hubFiles(repo, file, options);
    const name = options.name ?? fileStem(file);
    return await this.#store({ name, files }, files, hubHeaders(options.token), options);
  }

  async #store(
    manifest: Manifest,
    files: readonly (Manifest["files"][number] & { readonly url: string })[],
    headers: Readonly<Record<string, string>>,
    options: StoreOptions,
  ): Promise<StoredModel> {
    await writeManifest(manifest);
    const total = files.reduce((sum, file) => sum + file.size_bytes, 0);
    let before = 0;
    for (const { url, sha256, size_bytes: size, name: fileName } of files) {
      await this.#downloadBlob(
        { url, headers, sha256, size, name: fileName },
        { ...options, onProgress: (bytes) => options.onProgress?.((before + bytes) / total) },
      );
      before += size;
      options.onProgress?.(before / total);
    }
    return { name: manifest.name, size: total, stored: total };
  }

  /**
   * Stores a model from local files.
   * @param files the GGUF file, or all shards in order
   */
  async add(name: string, files: readonly File[], options: StoreOptions = {}): Promise<StoredModel> {
    const total = files.reduce((sum, { size }) => sum + size, 0);
    const stored: Manifest["files"] = [];
    let before = 0;
    for (const file of files) {
      const sha256 = await this.#runWorker(
        { type: "copy", blob: file, id: crypto.randomUUID() },
        { ...options, onProgress: (bytes) => options.onProgress?.((before + bytes) / total) },
      );
      before += file.size;
      stored.push({ role: "model", name: file.name, sha256, size_bytes: file.size });
    }
    await writeManifest({ name, files: stored });
    return { name, size: total, stored: total };
  }

  /**
   * Returns the options of createEngine() for a stored model.
   * @throws ServiceError model_not_found if the model is not stored completely
   */
  async open(
    name: string,
  ): Promise<Pick<CreateEngineOptions, "name" | "model" | "projector" | "adapters" | "modelfile">> {
    const manifest = (await readManifests()).find((each) => each.name === name);
    const blobs = await openBlobs();
    const files = await Promise.all(
      (manifest?.files ?? []).map(async ({ role, sha256, scale = 1 }) => ({
        role,
        scale,
        file: await findFile(blobs, sha256),
      })),
    );
    const present = files.flatMap(({ role, scale, file }) => (file ? [{ role, scale, file }] : []));
    if (!manifest || present.length < files.length) {
      throw new ServiceError(
        "model_not_found",
        `The model "${name}" is not stored in this browser, or not completely.`,
      );
    }
    const withRole = (role: Manifest["files"][number]["role"]) =>
      present.filter((each) => each.role === role);
    const [projector] = withRole("projector");
    return {
      name,
      model: withRole("model").map(({ file }) => file),
      ...(projector && { projector: projector.file }),
      adapters: withRole("adapter").map(({ file, scale }) => ({ file, scale })),
      ...(manifest.modelfile !== undefined && { modelfile: manifest.modelfile }),
    };
  }

  /** Deletes a model, and the files that no other model uses. */
  async delete(name: string): Promise<void> {
    await removeManifest(name);
    const used = new Set((await readManifests()).flatMap(({ files }) => files.map(({ sha256 }) => sha256)));
    const blobs = await openBlobs();
    const names: string[] = [];
    for await (const each of blobs.keys()) names.push(each);
    for (const each of names) if (!used.has(each.replace(/\.part$/, ""))) await removeIfExists(blobs, each);
  }

  /** Downloads a file, unless it is stored. Tabs that download the same file wait for each other. */
  async #downloadBlob(
    task: Omit<Extract<BlobTask, { type: "download" }>, "type">,
    options: WorkOptions,
  ): Promise<void> {
    const { signal } = options;
    await navigator.locks.request(`daybreak-${task.sha256}`, signal ? { signal } : {}, async () => {
      if (await findFile(await openBlobs(), task.sha256)) return;
      await this.#runWorker({ type: "download", ...task }, options);
    });
  }

  async #runWorker(task: BlobTask, { onProgress, signal }: WorkOptions): Promise<string> {
    signal?.throwIfAborted();
    const worker = new Worker(this.#worker, { type: "module" });
    const result = Promise.withResolvers<string>();
    worker.addEventListener("message", ({ data }: MessageEvent<BlobMessage>) => {
      if (data.type === "progress") onProgress?.(data.bytes);
      else if (data.type === "done") result.resolve(data.sha256);
      else result.reject(new ServiceError(data.code, data.message));
    });
    worker.addEventListener("error", ({ message }) =>
      result.reject(
        new ServiceError("internal_error", `The store's worker failed: ${message || "it cannot be loaded"}.`),
      ),
    );
    try {
      worker.postMessage(task, []);
      return await (signal ? abortable(result.promise, signal) : result.promise);
    } finally {
      worker.terminate();
    }
  }
}

interface WorkOptions {
  /** Called with the stored bytes of the file. */
  readonly onProgress?: ((bytes: number) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

async function storedBytes(blobs: FileSystemDirectoryHandle, sha256: string): Promise<number> {
  return ((await findFile(blobs, sha256)) ?? (await findFile(blobs, `${sha256}.part`)))?.size ?? 0;
}

async function downloadError(name: string, answer: Response): Promise<ServiceError> {
  const { data } = errorSchema.safeParse(await answer.json().catch(() => undefined));
  return new ServiceError(
    answer.status === 404 ? "model_not_found" : "download_failed",
    data?.error.message ??
      `The model "${name}" cannot be downloaded: the server answered with status ${answer.status}.`,
  );
}
