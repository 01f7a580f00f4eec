import { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import { fileStem } from "../../models/names/model-file-names.ts";
import type { CreateEngineOptions } from "../create-engine.ts";
import { type BlobMessage, type BlobTask, findFile, openBlobs, removeIfThere } from "./blob-folder.ts";
import { fileSchema, type Manifest, readManifests, removeManifest, writeManifest } from "./manifests.ts";
import { hubFiles, hubHeaders, type HubOptions } from "./hub-files.ts";

/** What GET /api/models/<name>/files answers. */
const offerSchema = z.object({
  alias: z.string(),
  modelfile: z.string(),
  files: z.array(fileSchema.extend({ url: z.string() })).min(1),
});

const problemSchema = z.object({ error: z.object({ message: z.string() }) });

/** A model in the browser's storage. */
export interface StoredModel {
  readonly name: string;
  /** Bytes of all its files. */
  readonly size: number;
  /** Bytes of them that are stored; less than its size while it is downloaded, or after that was interrupted. */
  readonly stored: number;
}

export interface StoreOptions {
  /** Called with 0 to 1. */
  readonly onProgress?: (progress: number) => void;
  readonly signal?: AbortSignal;
}

export interface DownloadOptions extends StoreOptions {
  /** Address of the daemon. Default: that of the page. */
  readonly daemon?: string | URL;
  /** The daemon's API key, where it has keys. */
  readonly apiKey?: string;
}

/**
 * Models in the storage that the browser keeps for this site (the origin private file system). Each file is stored
 * once, under its SHA-256, however many models it belongs to.
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

  /** Bytes that this site uses, bytes it may still use, and whether the browser keeps them when space is scarce. */
  async usage(): Promise<{ used: number; free: number; persistent: boolean }> {
    const { usage = 0, quota = 0 } = await navigator.storage.estimate();
    return { used: usage, free: Math.max(0, quota - usage), persistent: await navigator.storage.persisted() };
  }

  /** Asks the browser to keep the models even when space is scarce; some ask their user. */
  async persist(): Promise<boolean> {
    return await navigator.storage.persist();
  }

  /**
   * Stores a model of a daemon; what is there already is kept, so an interrupted download goes on.
   * @throws ServiceError such as model_not_found, insufficient_disk or download_failed, or the signal's reason
   */
  async download(name: string, options: DownloadOptions = {}): Promise<StoredModel> {
    const { daemon = location.href, apiKey, signal } = options;
    const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
    const address = new URL(`/api/models/${encodeURIComponent(name)}/files`, daemon);
    const answer = await fetch(address, { headers, ...(signal && { signal }) });
    if (!answer.ok) throw await refusal(name, answer);
    const { modelfile, files } = offerSchema.parse(await answer.json());
    const remote = files.map((file) => ({ ...file, url: new URL(file.url, address).href }));
    return await this.#store({ name, modelfile, files }, remote, headers, options);
  }

  /**
   * Stores a model of the hub, as download() does one of a daemon.
   * @param repo owner/repository
   * @param file a GGUF file in it; of several shards any; the option `projector` names the file that lets it see images
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
      await this.#bring(
        { url, headers, sha256, size, name: fileName },
        { ...options, onProgress: (bytes) => options.onProgress?.((before + bytes) / total) },
      );
      before += size;
      options.onProgress?.(before / total);
    }
    return { name: manifest.name, size: total, stored: total };
  }

  /**
   * Stores a model from files, such as those that a user has picked.
   * @param files the GGUF file, or all shards in order
   */
  async add(name: string, files: readonly File[], options: StoreOptions = {}): Promise<StoredModel> {
    const total = files.reduce((sum, { size }) => sum + size, 0);
    const stored: Manifest["files"] = [];
    let before = 0;
    for (const file of files) {
      const sha256 = await this.#work(
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
   * What createEngine takes of a stored model.
   * @throws ServiceError model_not_found if it is not stored, or not completely
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
    const of = (role: Manifest["files"][number]["role"]) => present.filter((each) => each.role === role);
    const [projector] = of("projector");
    return {
      name,
      model: of("model").map(({ file }) => file),
      ...(projector && { projector: projector.file }),
      adapters: of("adapter").map(({ file, scale }) => ({ file, scale })),
      ...(manifest.modelfile !== undefined && { modelfile: manifest.modelfile }),
    };
  }

  /** Deletes a model, and those of its files that no other model has. */
  async delete(name: string): Promise<void> {
    await removeManifest(name);
    const kept = new Set((await readManifests()).flatMap(({ files }) => files.map(({ sha256 }) => sha256)));
    const blobs = await openBlobs();
    const names: string[] = [];
    for await (const each of blobs.keys()) names.push(each);
    for (const each of names) if (!kept.has(each.replace(/\.part$/, ""))) await removeIfThere(blobs, each);
  }

  /** Downloads a file that is not there; tabs that want the same one wait for each other. */
  async #bring(
    task: Omit<Extract<BlobTask, { type: "download" }>, "type">,
    options: WorkOptions,
  ): Promise<void> {
    const { signal } = options;
    await navigator.locks.request(`daybreak-${task.sha256}`, signal ? { signal } : {}, async () => {
      if (await findFile(await openBlobs(), task.sha256)) return;
      await this.#work({ type: "download", ...task }, options);
    });
  }

  async #work(task: BlobTask, { onProgress, signal }: WorkOptions): Promise<string> {
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
    const onAbort = (): void => result.reject(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      worker.postMessage(task, []);
      return await result.promise;
    } finally {
      signal?.removeEventListener("abort", onAbort);
      worker.terminate();
    }
  }
}

interface WorkOptions {
  /** Called with the bytes of the file that are stored. */
  readonly onProgress?: ((bytes: number) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

async function storedBytes(blobs: FileSystemDirectoryHandle, sha256: string): Promise<number> {
  return ((await findFile(blobs, sha256)) ?? (await findFile(blobs, `${sha256}.part`)))?.size ?? 0;
}

async function refusal(name: string, answer: Response): Promise<ServiceError> {
  const { data } = problemSchema.safeParse(await answer.json().catch(() => undefined));
  return new ServiceError(
    answer.status === 404 ? "model_not_found" : "download_failed",
    data?.error.message ??
      `The model "${name}" cannot be downloaded: the server answered with status ${answer.status}.`,
  );
}
