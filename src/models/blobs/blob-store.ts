import { createHash, randomUUID } from "node:crypto";
import { mkdir, open, readdir, rename, stat } from "node:fs/promises";
import path from "node:path";
import type { Config } from "../../config/schema.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { removeFile } from "../../files/file-operations.ts";
import type { Blobs } from "../models.ts";

/** First bytes of a GGUF file. */
const MAGIC = Buffer.from("GGUF");
/** Maximum bytes of an upload, above any loadable model, so that an endless one fails. */
const MAX_BLOB_BYTES = 1024 ** 4;
/** Age after which unused files are removed; clients create their models directly after the upload. */
const ABANDONED_MS = 24 * 60 * 60 * 1000;

const PARTIAL = ".partial";
const BLOB_NAME = /\bsha256-[0-9a-f]{64}\.gguf\b/g;

/** Uploaded and quantized files, named by their SHA-256: models and adapters for Modelfiles. */
export class BlobStore implements Blobs {
  readonly folder: string;
  readonly #isNeeded: (name: string) => boolean;

  /** @param isNeeded true if a model needs the file with this name or path */
  constructor(folder: string, isNeeded: (name: string) => boolean) {
    this.folder = folder;
    this.#isNeeded = isNeeded;
  }

  async find(digest: string): Promise<string | undefined> {
    const file = this.#fileOf(digest);
    const stats = await stat(file).catch(() => undefined);
    return stats?.isFile() ? file : undefined;
  }

  async write(digest: string, chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void> {
    await this.#save(chunks, hexOf(digest));
  }

  /** Saves a quantized file and returns its path. */
  async add(chunks: AsyncIterable<Uint8Array>): Promise<string> {
    return await this.#save(chunks, undefined);
  }

  /** Deletes a file, unless a model needs it. */
  async discard(file: string): Promise<void> {
    if (!this.#isNeeded(path.basename(file))) await removeFile(file);
  }

  /** Deletes the files that a deleted model's Modelfile names, except those that other models need. */
  async discardNamedIn(modelfile: string): Promise<void> {
    for (const [name] of modelfile.matchAll(BLOB_NAME)) await this.discard(path.join(this.folder, name));
  }

  async #save(
    chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    expected: string | undefined,
  ): Promise<string> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    await this.#removeAbandoned();
    const partial = path.join(this.folder, `${randomUUID()}${PARTIAL}`);
    try {
      const actual = await writeHashed(partial, chunks);
      if (expected !== undefined && actual !== expected) {
        throw new ServiceError(
          "invalid_parameter",
          `The digest does not match: the uploaded file has sha256:${actual}.`,
          { param: "digest" },
        );
      }
      const target = this.#fileOf(`sha256:${actual}`);
      await rename(partial, target);
      return target;
    } catch (error) {
      await removeFile(partial);
      throw error;
    }
  }

  #fileOf(digest: string): string {
    return path.join(this.folder, `sha256-${hexOf(digest)}.gguf`);
  }

  async #removeAbandoned(): Promise<void> {
    for (const name of await readdir(this.folder)) {
      const file = path.join(this.folder, name);
      const stats = await stat(file).catch(() => undefined);
      if (stats && Date.now() - stats.mtimeMs > ABANDONED_MS && !this.#isNeeded(name)) await removeFile(file);
    }
  }
}

/** Writes a file; returns its SHA-256 in hexadecimal. */
async function writeHashed(
  file: string,
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<string> {
  const hash = createHash("sha256");
  await using handle = await open(file, "wx", 0o600);
  let size = 0;
  let start = Buffer.alloc(0);
  for await (const chunk of chunks) {
    size += chunk.byteLength;
    if (size > MAX_BLOB_BYTES) {
      throw new ServiceError("payload_too_large", `A file may have at most ${MAX_BLOB_BYTES} bytes.`);
    }
    if (start.length < MAGIC.length) {
      start = Buffer.concat([start, chunk.subarray(0, MAGIC.length)]).subarray(0, MAGIC.length);
      if (start.length === MAGIC.length) checkMagic(start);
    }
    hash.update(chunk);
    await handle.writeFile(chunk);
  }
  checkMagic(start);
  await handle.sync();
  return hash.digest("hex");
}

function checkMagic(start: Buffer): void {
  if (start.equals(MAGIC)) return;
  throw new ServiceError(
    "invalid_parameter",
    "Only GGUF files can be uploaded; convert a model in Safetensors or PyTorch format to GGUF first, with llama.cpp's convert_hf_to_gguf.py.",
  );
}

/** @throws ServiceError invalid_parameter for any text but a SHA-256, so that it cannot name another file */
function hexOf(digest: string): string {
  const hex = /^sha256[:-]([0-9a-f]{64})$/i.exec(digest)?.[1];
  if (hex !== undefined) return hex.toLowerCase();
  throw new ServiceError(
    "invalid_parameter",
    `${JSON.stringify(digest.slice(0, 100))} is not a digest: it must be sha256: followed by 64 hexadecimal digits.`,
    { param: "digest" },
  );
}

/** Adds the daemon's folders to models.allowed_dirs, unless that allows all folders. */
export function allowFolders<Settings extends Pick<Config, "models">>(
  config: Settings,
  folders: readonly string[],
): Settings {
  const { allowed_dirs: allowed } = config.models;
  if (allowed.length === 0) return config;
  return { ...config, models: { ...config.models, allowed_dirs: [...allowed, ...folders] } };
}
