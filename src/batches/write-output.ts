import type { BatchFormat } from "./batch-format.ts";
import type { BatchStore, FileContents } from "./batch-store.ts";
import type { AnsweredLine, Batch, FilePurpose, StoredFile } from "./batch.ts";
import { newId } from "./new-id.ts";

/** Answers in memory at once; the longest, vectors of long lists, have megabytes. */
const ANSWERS_AT_ONCE = 32;

interface WriteOptions {
  readonly store: Pick<BatchStore, "answers" | "file">;
  readonly folder: Pick<FileContents, "write" | "remove">;
  readonly format: BatchFormat;
  /** The id of a file that is about to be written. */
  readonly newFileId?: () => string;
  readonly now: () => number;
}

export interface WrittenOutput {
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
  for (let after = 0; ;) {
    const page = await store.answers(id, after, ANSWERS_AT_ONCE);
    const last = page.at(-1);
    if (!last) return;
    const text = page.filter(belongs).map((line) => `${format.write(line)}\n`);
    if (text.length > 0) yield encoder.encode(text.join(""));
    after = last.number;
  }
}
