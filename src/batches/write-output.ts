import type { BatchFormat } from "./batch-format.ts";
import type { BatchStore, FileContents } from "./batch-store.ts";
import type { AnsweredLine, Batch, FilePurpose, StoredFile } from "./batch.ts";
import { newId } from "./new-id.ts";

/** Answers that are read at once: fewer while they are long, as vectors of long lists are, which have many megabytes. */
const ANSWERS_AT_ONCE = 32;
const CHARACTERS_AT_ONCE = 16 * 1024 * 1024;
/** Short lines are written together. */
const CHARACTERS_WRITTEN = 256 * 1024;

interface WriteOptions {
  readonly store: Pick<BatchStore, "answers" | "file">;
  readonly folder: Pick<FileContents, "write" | "remove">;
  readonly format: BatchFormat;
  /** The id of a file that is about to be written. */
  readonly newFileId?: () => string;
  readonly now: () => number;
}

interface WrittenOutput {
  readonly output?: StoredFile;
  readonly errors?: StoredFile;
}

/**
 * Writes the answers of a batch, in the order of its input, to files. The files are durable but unknown until the store has
 * them, so that this can be done again after any interruption.
 */
export async function writeOutput(batch: Batch, options: WriteOptions): Promise<WrittenOutput> {
  const { separatesErrors } = options.format;
  if (!separatesErrors) return { output: await write(batch, options, "results", "results", () => true) };
  const { succeeded, errored, cancelled, expired } = batch.counts;
  const output =
    succeeded > 0
      ? await write(batch, options, "batch_output", "output", ({ outcome }) => outcome === "succeeded")
      : undefined;
  try {
    const errors =
      errored + cancelled + expired > 0
        ? await write(batch, options, "batch_output", "error", ({ outcome }) => outcome !== "succeeded")
        : undefined;
    return { ...(output && { output }), ...(errors && { errors }) };
  } catch (error) {
    await forget(output ? [output] : [], options);
    throw error;
  }
}

/** Removes files that the store does not have: written again and again, they would fill the disk. */
export async function forget(
  files: readonly StoredFile[],
  { store, folder }: Pick<WriteOptions, "store" | "folder">,
): Promise<void> {
  for (const { id } of files) if (!(await store.file(id, undefined))) await folder.remove(id);
}

async function write(
  { id: batch, owner, outputLifeMs }: Batch,
  { store, folder, format, now, newFileId = () => newId("file") }: WriteOptions,
  purpose: FilePurpose,
  kind: string,
  belongs: (line: AnsweredLine) => boolean,
): Promise<StoredFile> {
  const id = newFileId();
  const createdAt = now();
  const bytes = await folder.write(id, linesOf(batch, store, format, belongs));
  const name = `${batch}_${kind}.jsonl`;
  return { id, owner, purpose, name, bytes, createdAt, expiresAt: createdAt + outputLifeMs };
}

async function* linesOf(
  id: string,
  store: WriteOptions["store"],
  format: BatchFormat,
  belongs: (line: AnsweredLine) => boolean,
): AsyncGenerator<Uint8Array, void, undefined> {
  const encoder = new TextEncoder();
  let text = "";
  for (let after = 0, most = 1; ;) {
    const page = await store.answers(id, after, most);
    const last = page.at(-1);
    if (!last) break;
    for (const line of page.filter(belongs)) {
      text += `${format.write(line)}\n`;
      if (text.length < CHARACTERS_WRITTEN) continue;
      yield encoder.encode(text);
      text = "";
    }
    after = last.number;
    const length = page.reduce((sum, { answer }) => sum + (answer?.body.length ?? 0), 0);
    const fitting = Math.floor((CHARACTERS_AT_ONCE * page.length) / Math.max(1, length));
    most = Math.min(2 * most, ANSWERS_AT_ONCE, Math.max(1, fitting));
  }
  if (text !== "") yield encoder.encode(text);
}
