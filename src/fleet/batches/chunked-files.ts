import { setTimeout as sleep } from "node:timers/promises";
import type { FileContents } from "../../batches/batch-store.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { isUnreachable } from "../jetstream/jetstream-errors.ts";
import type { JetStreamStore } from "./jetstream-store.ts";

/** Below what any server lets a message have. */
const PIECE_BYTES = 128 * 1024;
/** Neighboring lines of a batch are read from the same pieces: 8 MiB at most. */
const PIECES_KEPT = 64;
/** On their way at once. */
const PIECES_AT_ONCE = 8;
/** A client that has a part of a file waits for the rest while the server is away; a cluster is without a leader for ten seconds. */
const PATIENCE_MS = 30_000;
const AGAIN_MS = 500;
/** Longer than any upload takes. */
const UNKNOWN_MS = 24 * 3_600_000;

/** Content of files in pieces of a stream. What no record knows of is not there for anyone. */
export class ChunkFolder implements FileContents {
  readonly #place: JetStreamStore;
  /** Pieces that were read last. A file never changes. */
  readonly #kept = new Map<string, Promise<Uint8Array>>();

  constructor(place: JetStreamStore) {
    this.#place = place;
  }

  async write(id: string, pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<number> {
    let bytes = 0;
    let number = 0;
    const underWay = new Set<Promise<unknown>>();
    try {
      for await (const piece of inPieces(pieces)) {
        if (underWay.size >= PIECES_AT_ONCE) await Promise.race(underWay);
        const put = this.#place.put(this.#subject(id, number), piece).finally(() => underWay.delete(put));
        // Awaited below; until then it must not count as unhandled.
        put.catch(() => undefined);
        underWay.add(put);
        number += 1;
        bytes += piece.byteLength;
      }
      await Promise.all(underWay);
      return bytes;
    } catch (error) {
      await Promise.allSettled(underWay);
      // What stays because the server is away is swept later.
      await this.remove(id).catch(() => undefined);
      throw error;
    }
  }

  async check(id: string, bytes: number): Promise<void> {
    await Promise.all([this.#piece(id, 0), this.#piece(id, Math.floor(bytes / PIECE_BYTES))]);
  }

  async *read(
    id: string,
    start = 0,
    end = Number.POSITIVE_INFINITY,
    patienceMs = 0,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    let position = start;
    while (position <= end) {
      const piece = await this.#patiently(id, Math.floor(position / PIECE_BYTES), patienceMs);
      const from = position % PIECE_BYTES;
      const part = piece.subarray(from, Math.min(piece.byteLength, from + end - position + 1));
      if (part.byteLength > 0) yield part;
      if (piece.byteLength < PIECE_BYTES) return;
      position += part.byteLength;
    }
  }

  stream(id: string, start: number, end: number): ReadableStream<Uint8Array> {
    const parts = this.read(id, start, end, PATIENCE_MS);
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
    await this.#place.purge("batchdata", this.#subject(id, "*"));
  }

  /** Removes what nobody has known of for a day: what was left by a machine that was killed. */
  async sweep(isKnown: (id: string) => boolean, now: number): Promise<void> {
    for (const subject of await this.#place.subjects("batchdata", this.#subject("*", 0))) {
      const id = subject.split(".").at(-2) ?? "";
      if (isKnown(id)) continue;
      const first = await this.#place.get("batchdata", subject);
      if (first && first.time < now - UNKNOWN_MS) await this.remove(id);
    }
  }

  #subject(id: string, piece: number | "*"): string {
    return this.#place.subject("batchdata", "file", id, String(piece));
  }

  async #patiently(id: string, number: number, patienceMs: number): Promise<Uint8Array> {
    const deadline = performance.now() + patienceMs;
    for (;;) {
      try {
        return await this.#piece(id, number);
      } catch (error) {
        if (!isUnreachable(error) || performance.now() >= deadline) throw error;
        await sleep(AGAIN_MS, undefined, { ref: false });
      }
    }
  }

  async #piece(id: string, number: number): Promise<Uint8Array> {
    const subject = this.#subject(id, number);
    const known = this.#kept.get(subject) ?? this.#fetch(subject);
    // The one that was used last is the last to go.
    this.#kept.delete(subject);
    this.#kept.set(subject, known);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > PIECES_KEPT && oldest !== undefined) this.#kept.delete(oldest);
    try {
      return await known;
    } catch (error) {
      this.#kept.delete(subject);
      throw error;
    }
  }

  async #fetch(subject: string): Promise<Uint8Array> {
    const found = await this.#place.get("batchdata", subject);
    if (found) return found.data;
    throw new ServiceError("file_not_found", "The file's content is not there, or no longer.");
  }
}

/** Pieces of the same size, the last of which is shorter, if only by being empty: it ends the file. */
async function* inPieces(
  parts: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  let piece = new Uint8Array(PIECE_BYTES);
  let length = 0;
  for await (const part of parts) {
    for (let from = 0; from < part.byteLength;) {
      const taken = part.subarray(from, from + PIECE_BYTES - length);
      piece.set(taken, length);
      length += taken.byteLength;
      from += taken.byteLength;
      if (length < PIECE_BYTES) continue;
      yield piece;
      piece = new Uint8Array(PIECE_BYTES);
      length = 0;
    }
  }
  yield piece.subarray(0, length);
}
