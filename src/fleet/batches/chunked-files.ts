import { setTimeout as sleep } from "node:timers/promises";
import type { FileContents } from "../../batches/batch-store.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { isUnreachable } from "../jetstream/jetstream-errors.ts";
import type { JetStreamStore } from "./jetstream-store.ts";

/** Bytes of a chunk, below the message limit of every server. */
const CHUNK_BYTES = 128 * 1024;
/** Maximum cached chunks, 8 MiB in total: neighboring lines of a batch are read from the same chunks. */
const MAX_CACHED_CHUNKS = 64;
/** Maximum parallel writes. */
const PARALLEL_WRITES = 8;
/** Time that a started download waits for an unreachable server; a cluster may lack a leader for ten seconds. */
const STREAM_RETRY_MS = 30_000;
const RETRY_DELAY_MS = 500;
/** Files without a record are deleted after this time, which is longer than any upload takes. */
const UNKNOWN_TTL_MS = 24 * 3_600_000;

/**
 * Content of files in chunks of a stream. Files without a record are not visible. Not made with @nats-io/obj, whose
 * objects can only be read whole: lines are read from anywhere in a file.
 */
export class ChunkFolder implements FileContents {
  readonly #jetStream: JetStreamStore;
  /** Recently used chunks. Files never change. */
  readonly #cached = new Map<string, Promise<Uint8Array>>();

  constructor(jetStream: JetStreamStore) {
    this.#jetStream = jetStream;
  }

  async write(id: string, chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<number> {
    let bytes = 0;
    let number = 0;
    const pendingWrites = new Set<Promise<unknown>>();
    try {
      for await (const chunk of splitIntoChunks(chunks)) {
        if (pendingWrites.size >= PARALLEL_WRITES) await Promise.race(pendingWrites);
        const put = this.#jetStream
          .put(this.#subject(id, number), chunk)
          .finally(() => pendingWrites.delete(put));
        // Awaited below; until then a rejection must not count as unhandled.
        put.catch(() => undefined);
        pendingWrites.add(put);
        number += 1;
        bytes += chunk.byteLength;
      }
      await Promise.all(pendingWrites);
      return bytes;
    } catch (error) {
      await Promise.allSettled(pendingWrites);
      // Remains are swept later if the server is unreachable.
      await this.remove(id).catch(() => undefined);
      throw error;
    }
  }

  async check(id: string, bytes: number): Promise<void> {
    await Promise.all([this.#chunk(id, 0), this.#chunk(id, Math.floor(bytes / CHUNK_BYTES))]);
  }

  async *read(
    id: string,
    start = 0,
    end = Number.POSITIVE_INFINITY,
    retryMs = 0,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    let position = start;
    while (position <= end) {
      const chunk = await this.#chunkWithRetry(id, Math.floor(position / CHUNK_BYTES), retryMs);
      const from = position % CHUNK_BYTES;
      const part = chunk.subarray(from, Math.min(chunk.byteLength, from + end - position + 1));
      if (part.byteLength > 0) yield part;
      if (chunk.byteLength < CHUNK_BYTES) return;
      position += part.byteLength;
    }
  }

  stream(id: string, start: number, end: number): ReadableStream<Uint8Array> {
    const parts = this.read(id, start, end, STREAM_RETRY_MS);
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { value, done } = await parts.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
    });
  }

  async text(id: string, start: number, length: number): Promise<string> {
    const parts: Uint8Array[] = [];
    if (length > 0) for await (const part of this.read(id, start, start + length - 1)) parts.push(part);
    return Buffer.concat(parts).toString("utf8");
  }

  async remove(id: string): Promise<void> {
    await this.#jetStream.purge("batchdata", this.#subject(id, "*"));
  }

  /** Removes files without a record that are a day old, left by killed machines. */
  async sweep(isKnown: (id: string) => boolean, now: number): Promise<void> {
    for (const subject of await this.#jetStream.subjects("batchdata", this.#subject("*", 0))) {
      const id = subject.split(".").at(-2) ?? "";
      if (isKnown(id)) continue;
      const first = await this.#jetStream.get("batchdata", subject);
      if (first && first.time < now - UNKNOWN_TTL_MS) await this.remove(id);
    }
  }

  #subject(id: string, chunk: number | "*"): string {
    return this.#jetStream.subject("batchdata", "file", id, String(chunk));
  }

  async #chunkWithRetry(id: string, number: number, retryMs: number): Promise<Uint8Array> {
    const deadline = performance.now() + retryMs;
    for (;;) {
      try {
        return await this.#chunk(id, number);
      } catch (error) {
        if (!isUnreachable(error) || performance.now() >= deadline) throw error;
        await sleep(RETRY_DELAY_MS, undefined, { ref: false });
      }
    }
  }

  async #chunk(id: string, number: number): Promise<Uint8Array> {
    const subject = this.#subject(id, number);
    const known = this.#cached.get(subject) ?? this.#fetch(subject);
    // Keeps the map in order of use.
    this.#cached.delete(subject);
    this.#cached.set(subject, known);
    const [oldest] = this.#cached.keys();
    if (this.#cached.size > MAX_CACHED_CHUNKS && oldest !== undefined) this.#cached.delete(oldest);
    try {
      return await known;
    } catch (error) {
      this.#cached.delete(subject);
      throw error;
    }
  }

  async #fetch(subject: string): Promise<Uint8Array> {
    const found = await this.#jetStream.get("batchdata", subject);
    if (found) return found.data;
    throw new ServiceError("file_not_found", "The file's content is not there, or no longer.");
  }
}

/** Splits data into chunks of the same size; the last one is shorter, and perhaps empty, and so marks the end. */
async function* splitIntoChunks(
  parts: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  let chunk = new Uint8Array(CHUNK_BYTES);
  let length = 0;
  for await (const part of parts) {
    for (let from = 0; from < part.byteLength;) {
      const taken = part.subarray(from, from + CHUNK_BYTES - length);
      chunk.set(taken, length);
      length += taken.byteLength;
      from += taken.byteLength;
      if (length < CHUNK_BYTES) continue;
      yield chunk;
      chunk = new Uint8Array(CHUNK_BYTES);
      length = 0;
    }
  }
  yield chunk.subarray(0, length);
}
