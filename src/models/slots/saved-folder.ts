import { createHash, randomUUID } from "node:crypto";
import { mkdir, open, stat, utimes } from "node:fs/promises";
import path from "node:path";
import type { SlotState } from "../../engine/engine-slots.ts";
import { isSystemError, ServiceError } from "../../errors/service-error.ts";
import { listNames, removeFile, replaceFile, toWriteError } from "../../files/file-operations.ts";
import { readSavedFile, readSavedHeader, savedFileBytes, writeSavedFile } from "./saved-file.ts";
import { SAVED_NAME, type SavedHeader } from "./saved-header.ts";

/** Names of automatically saved prompts: a hash of the tokens. */
const AUTOMATIC_NAME = /^@[0-9a-f]{16}$/;

const EXTENSION = ".slot";
const PARTIAL = ".partial";
/** Age after which a partial file must be from a daemon that was killed. */
const ABANDONED_MS = 60 * 60 * 1000;

export interface SavedEntry {
  readonly name: string;
  readonly isAutomatic: boolean;
  readonly bytes: number;
  /** Unix milliseconds. */
  readonly savedAt: number;
  /** Undefined: the file is damaged. */
  readonly header: SavedHeader | undefined;
}

interface SavedFile extends Pick<SavedEntry, "name" | "bytes" | "savedAt"> {
  readonly file: string;
}

/**
 * Folder of saved prompts, with a subfolder per model and a file per prompt. Their total size is limited: new prompts
 * displace the oldest ones, automatically saved ones first.
 */
export class SavedFolder {
  readonly #folder: string;
  readonly #limitBytes: number;

  constructor(folder: string, limitBytes: number) {
    this.#folder = folder;
    this.#limitBytes = limitBytes;
  }

  /** Returns the name of an automatically saved conversation, a hash of its tokens and adapter scales. */
  static automaticName({ tokens, scales }: Pick<SlotState, "tokens" | "scales">): string {
    const bytes = new Uint8Array(tokens.buffer, tokens.byteOffset, tokens.byteLength);
    const hash = createHash("sha256").update(bytes).update(Float64Array.from(scales));
    return `@${hash.digest("hex").slice(0, 16)}`;
  }

  /** Lists the saved prompts of a model, the newest first. */
  async list(alias: string): Promise<readonly SavedEntry[]> {
    const entries = (await this.#filesIn(this.#folderOf(alias))).map(
      async ({ file, name, bytes, savedAt }) => ({
        name,
        isAutomatic: isAutomatic(name),
        bytes,
        savedAt,
        header: await readSavedHeader(file).catch(() => undefined),
      }),
    );
    return (await Promise.all(entries)).toSorted((a, b) => b.savedAt - a.savedAt);
  }

  /** Reads a header. @throws ServiceError slot_state_not_found, or slot_state_mismatch for a damaged file */
  async header(alias: string, name: string): Promise<SavedHeader> {
    return await this.#orNotFound(name, async () => await readSavedHeader(this.#fileOf(alias, name)));
  }

  /** Reads the tokens of a prompt. @throws ServiceError like {@link header} */
  async tokens(alias: string, name: string): Promise<Int32Array> {
    return await this.#orNotFound(name, async () => {
      await using handle = await open(this.#fileOf(alias, name));
      return (await readSavedFile(handle)).tokens;
    });
  }

  /** Opens a prompt while `use` reads it. @throws ServiceError like {@link header} */
  async read(alias: string, name: string, use: (state: SlotState) => Promise<void>): Promise<void> {
    await this.#orNotFound(name, async () => {
      await using handle = await open(this.#fileOf(alias, name));
      await use(await readSavedFile(handle));
    });
  }

  /**
   * Writes a prompt, and replaces one with the same name.
   * @throws ServiceError insufficient_disk if it exceeds the limit, cache_not_writable
   */
  async write(alias: string, name: string, header: SavedHeader, state: SlotState): Promise<number> {
    const bytes = savedFileBytes(header);
    const folder = this.#folderOf(alias);
    const file = this.#fileOf(alias, name);
    await this.#removeOldest(bytes, file, isAutomatic(name));
    const partial = path.join(folder, `${randomUUID()}${PARTIAL}`);
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await writeSavedFile(partial, header, state);
      await replaceFile(partial, file);
    } catch (error) {
      await removeFile(partial).catch(() => undefined);
      throw toWriteError(error, `The prompt cannot be saved in ${this.#folder}`);
    }
    return bytes;
  }

  /** Marks a prompt as the newest; false if there is none of that name. */
  async touch(alias: string, name: string): Promise<boolean> {
    const now = new Date();
    return await utimes(this.#fileOf(alias, name), now, now).then(
      () => true,
      () => false,
    );
  }

  /** @throws ServiceError slot_state_not_found */
  async remove(alias: string, name: string): Promise<void> {
    await this.#orNotFound(name, async () => await stat(this.#fileOf(alias, name)));
    await removeFile(this.#fileOf(alias, name)).catch((error: unknown) => {
      throw toWriteError(error, `The prompt cannot be saved in ${this.#folder}`);
    });
  }

  async removeAll(alias: string): Promise<void> {
    for (const { file } of await this.#filesIn(this.#folderOf(alias))) await removeFile(file);
  }

  /** Returns a model's folder, named by a hash because an alias may have characters that file names may not. */
  #folderOf(alias: string): string {
    return path.join(this.#folder, createHash("sha256").update(alias).digest("hex").slice(0, 32));
  }

  #fileOf(alias: string, name: string): string {
    if (!SAVED_NAME.test(name) && !AUTOMATIC_NAME.test(name)) throw notFound(name);
    return path.join(this.#folderOf(alias), `${name}${EXTENSION}`);
  }

  async #orNotFound<Result>(name: string, use: () => Promise<Result>): Promise<Result> {
    try {
      return await use();
    } catch (error) {
      if (isSystemError(error) && (error.code === "ENOENT" || error.code === "ENOTDIR")) throw notFound(name);
      throw error;
    }
  }

  /**
   * Deletes the oldest prompts to stay within the limit. Automatic prompts never displace those that users have saved.
   */
  async #removeOldest(bytes: number, replaced: string, isForAutomatic: boolean): Promise<void> {
    const folders = (await listNames(this.#folder)).map((name) => path.join(this.#folder, name));
    const all = await Promise.all(folders.map(async (folder) => await this.#filesIn(folder)));
    const otherFiles = all.flat().filter(({ file }) => file !== replaced);
    const removable = otherFiles
      .filter(({ name }) => !isForAutomatic || isAutomatic(name))
      .toSorted((a, b) => Number(isAutomatic(b.name)) - Number(isAutomatic(a.name)) || a.savedAt - b.savedAt);
    let total = bytes + otherFiles.reduce((sum, each) => sum + each.bytes, 0);
    const removed: SavedFile[] = [];
    for (const candidate of removable) {
      if (total <= this.#limitBytes) break;
      removed.push(candidate);
      total -= candidate.bytes;
    }
    if (total > this.#limitBytes)
      throw new ServiceError(
        "insufficient_disk",
        `The prompt takes ${bytes} bytes, more than models.saved_prompts leaves of its ${this.#limitBytes}; delete saved prompts or raise it.`,
      );
    for (const { file } of removed) await removeFile(file);
  }

  async #filesIn(folder: string): Promise<SavedFile[]> {
    const files = (await listNames(folder)).map(async (entry) => {
      const file = path.join(folder, entry);
      const stats = await stat(file).catch(() => undefined);
      if (!stats?.isFile()) return [];
      if (entry.endsWith(PARTIAL) && Date.now() - stats.mtimeMs > ABANDONED_MS)
        await removeFile(file).catch(() => undefined);
      if (!entry.endsWith(EXTENSION)) return [];
      const name = entry.slice(0, -EXTENSION.length);
      return SAVED_NAME.test(name) || isAutomatic(name)
        ? [{ file, name, bytes: stats.size, savedAt: stats.mtimeMs }]
        : [];
    });
    return (await Promise.all(files)).flat();
  }
}

function isAutomatic(name: string): boolean {
  return AUTOMATIC_NAME.test(name);
}

function notFound(name: string): ServiceError {
  return new ServiceError(
    "slot_state_not_found",
    `The model has no saved prompt ${JSON.stringify(name.slice(0, 100))}; GET its slots to see which there are.`,
  );
}
