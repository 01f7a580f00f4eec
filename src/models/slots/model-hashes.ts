import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, readFile, realpath, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { abortable } from "../../async/abortable.ts";
import { replaceFile } from "../../files/replace-file.ts";
import { removeFile } from "../../files/remove-file.ts";

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
    const named = NAMED_BY_HASH.exec(path.basename(file))?.[1];
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
      await mkdir(path.dirname(this.#file), { recursive: true, mode: 0o700 });
      await writeFile(partial, JSON.stringify(kept), { mode: 0o600 });
      await replaceFile(partial, this.#file);
    } catch {
      await removeFile(partial).catch(() => undefined); // it is only computed again
    }
  }
}
