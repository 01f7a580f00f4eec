import { ServiceError } from "../errors/service-error.ts";
import type { Config } from "../config/schema.ts";
import type { ReceivedFile } from "./batches.ts";
import type { BatchRecords, FileContents } from "./batch-store.ts";
import type { NewId } from "./new-id.ts";

interface ReceiveOptions {
  readonly store: Pick<BatchRecords, "storedBytes" | "addFile">;
  readonly folder: Pick<FileContents, "write" | "remove">;
  readonly newId: NewId;
  readonly limits: Pick<Config["batches"], "max_file_size" | "max_total_size" | "retention">;
  /** Of all files that have not been kept yet. */
  readonly arriving: { bytes: number };
  readonly now: () => number;
}

/** Writes a file that arrives to the disk, piece by piece. Until it is kept, nothing knows of it. */
export async function receiveFile(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { store, folder, newId, limits, arriving, now }: ReceiveOptions,
): Promise<ReceivedFile> {
  const room = limits.max_total_size - (await store.storedBytes());
  const id = newId("file");
  let held = 0;
  const hold = (change: number): void => {
    held += change;
    arriving.bytes += change;
    if (arriving.bytes > room) throw tooMuch(limits);
  };
  const release = (): void => {
    arriving.bytes -= held;
    held = 0;
  };
  const bytes = await folder.write(id, bounded(pieces, hold, limits)).catch((error: unknown) => {
    release();
    throw error;
  });
  let isKept = false;
  return {
    bytes,
    async keep({ viewer, purpose, name, lifeMs = limits.retention }) {
      // Others may have been kept since it began to arrive.
      if ((await store.storedBytes()) + bytes > limits.max_total_size) throw tooMuch(limits);
      const createdAt = now();
      const expiresAt = createdAt + Math.min(lifeMs, limits.retention);
      const file = { id, owner: viewer ?? "", purpose, name, bytes, createdAt, expiresAt };
      await store.addFile(file);
      isKept = true;
      release();
      return file;
    },
    async [Symbol.asyncDispose]() {
      release();
      // What stays is swept later: why it was not kept is what its client has to be told.
      if (!isKept) await folder.remove(id).catch(() => undefined);
    },
  };
}

async function* bounded(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  hold: (bytes: number) => void,
  { max_file_size: maxBytes }: ReceiveOptions["limits"],
): AsyncGenerator<Uint8Array, void, undefined> {
  let bytes = 0;
  for await (const piece of pieces) {
    bytes += piece.byteLength;
    if (bytes > maxBytes) {
      throw new ServiceError(
        "payload_too_large",
        `The file is larger than the limit of ${maxBytes} bytes (batches.max_file_size).`,
      );
    }
    hold(piece.byteLength);
    yield piece;
  }
}

function tooMuch({ max_total_size: total }: ReceiveOptions["limits"]): ServiceError {
  return new ServiceError(
    "insufficient_disk",
    `The files of all batches together may take ${total} bytes (batches.max_total_size), which this one would exceed; delete some first.`,
  );
}
