import { setTimeout as delay } from "node:timers/promises";
import { abortable } from "../../async/promises.ts";
import type { HubPeers, PeerListing, SharedFile } from "../../models/hub/cache/cached-files.ts";
import type { FleetConnection } from "../fleet-connection.ts";
import { readJson, writeJson } from "../wire-format.ts";
import type { Machine, Presence } from "../presence.ts";
import { ANSWER, type FileQuestion, listingSchema, PIECE_BYTES } from "./file-server.ts";

/** Pieces that are asked for before the first of them is here: 4 MiB, which fills a line of 10 Gbit/s in a building. */
const PIECES_AHEAD = 8;
/** How long a machine may take for a question, and for a piece, behind those of other machines. */
const QUESTION_MS = 3000;
const PIECE_MS = 10_000;
/** How long a NATS server may be gone in the middle of a file before the hub goes on. */
const RECONNECT_MS = 15_000;
/** How long it may take after that until a machine is back, or another one is there. */
const RETURN_MS = 2500;
const LOOK_MS = 100;
/** A machine that failed so often without sending anything in between is not asked again for this file. */
const MAX_FAILURES = 2;
/** Between two tries of a machine that is busy, or has failed. */
const PAUSE_MS = 200;
/** Before a piece that its machine does not have yet is asked for again. */
const GROWING_PAUSE_MS = 500;
/**
 * Many begin at once when a class is told to. Each waits for a moment of its own before it asks the hub for a file of this
 * size, so that the first one has begun when the others look again.
 */
const LARGE_BYTES = 64 * 1024 * 1024;
const MAX_PATIENCE_MS = 1000;
/** Machines that are asked whether they have a file. */
const MAX_ASKED = 64;

interface FileFetcherOptions {
  readonly connection: FleetConnection;
  readonly presence: Pick<Presence, "machines" | "has" | "onChange">;
}

/** A machine does not have the file after all, or sends something else. */
class WrongAnswer extends Error {
  override readonly name = "WrongAnswer";
}

/** Brings files from other machines, in pieces that are asked for one by one, so that what is under way is bounded. */
export class FileFetcher implements HubPeers {
  readonly #options: FileFetcherOptions;

  constructor(options: FileFetcherOptions) {
    this.#options = options;
  }

  async *read(
    file: SharedFile,
    offset: number,
    onMachine: (name: string) => void,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    let position = offset;
    const failures = new Map<string, number>();
    while (position < file.size) {
      const machine =
        (await this.#find(file, failures, signal)) ??
        (position === offset ? await this.#findLater(file, signal) : undefined);
      if (machine === undefined) return;
      const { id, name } = machine.card;
      try {
        for await (const piece of this.#pieces(id, file, position, signal)) {
          if (failures.get(id) !== 0) onMachine(name);
          failures.set(id, 0);
          position += piece.length;
          yield piece;
        }
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof WrongAnswer) failures.set(id, MAX_FAILURES);
        else {
          failures.set(id, (failures.get(id) ?? 0) + 1);
          await pause(PAUSE_MS, signal);
        }
      }
    }
  }

  async list(repo: string, revision: string, signal: AbortSignal): Promise<readonly PeerListing[]> {
    const { machines } = this.#options.presence;
    const found = await Promise.all(
      chosen(machines, repo).map(async ({ card }) => {
        const answer = await this.#ask(card.id, { kind: "list", repo, revision }, QUESTION_MS).catch(
          () => undefined,
        );
        const listing = answer?.[0] === ANSWER.HERE ? readJson(listingSchema, answer.subarray(1)) : undefined;
        return listing?.repo === repo ? [{ machine: card.name, listing }] : [];
      }),
    );
    signal.throwIfAborted();
    return found.flat();
  }

  async #findLater(file: SharedFile, signal: AbortSignal): Promise<Machine | undefined> {
    if (file.size < LARGE_BYTES || this.#options.presence.machines.length === 0) return undefined;
    await pause(Math.random() * MAX_PATIENCE_MS, signal);
    return await this.#find(file, new Map(), signal);
  }

  /** A machine that has the file, any of them. A fleet that has sent some of it is waited for. */
  async #find(
    file: SharedFile,
    failures: ReadonlyMap<string, number>,
    signal: AbortSignal,
  ): Promise<Machine | undefined> {
    const { connection, presence } = this.#options;
    const [reconnectMs, returnMs] = failures.size > 0 ? [RECONNECT_MS, RETURN_MS] : [0, 0];
    const question = { kind: "has", repo: file.repo, digest: file.digest, size: file.size } as const;
    for (let since = performance.now(), was = connection.isConnected; ;) {
      const usable = presence.machines.filter(({ card }) => (failures.get(card.id) ?? 0) < MAX_FAILURES);
      const having = await Promise.all(
        chosen(usable, file.repo).map(async (machine) => {
          const answer = await this.#ask(machine.card.id, question, QUESTION_MS).catch(() => undefined);
          return { machine, answer: answer?.[0] };
        }),
      );
      signal.throwIfAborted();
      const whole = having.filter(({ answer }) => answer === ANSWER.HERE);
      // One that is bringing it from the hub sends what it has; another download of it would not be faster.
      const found = whole.length > 0 ? whole : having.filter(({ answer }) => answer === ANSWER.GROWING);
      if (found.length > 0) return found[Math.floor(Math.random() * found.length)]?.machine;
      const { isConnected } = connection;
      if (isConnected && !was) since = performance.now();
      was = isConnected;
      if (performance.now() - since >= (isConnected ? returnMs : reconnectMs)) return undefined;
      await pause(LOOK_MS, signal);
    }
  }

  /** Yields the pieces of one machine in order; throws when it does not go on. */
  async *#pieces(
    id: string,
    file: SharedFile,
    offset: number,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const { presence, connection } = this.#options;
    const gone = new AbortController();
    const endWatch = presence.onChange(() => {
      if (!presence.has(id)) gone.abort(new Error("the machine is gone"));
    });
    const ended = AbortSignal.any([signal, gone.signal]);
    const coming: Promise<Uint8Array>[] = [];
    let next = offset;
    try {
      for (;;) {
        while (coming.length < PIECES_AHEAD && next < file.size) {
          const length = Math.min(PIECE_BYTES, connection.maxPayload - 1, file.size - next);
          const piece = this.#piece(id, { kind: "read", ...file, offset: next, length }, ended);
          // It may fail before its turn comes, or when nobody waits for it any more.
          piece.catch(() => undefined);
          coming.push(piece);
          next += length;
        }
        const first = coming.shift();
        if (first === undefined) return;
        yield await abortable(first, ended);
      }
    } finally {
      endWatch();
      gone.abort(new Error("nobody wants the rest"));
    }
  }

  async #piece(
    id: string,
    question: Extract<FileQuestion, { kind: "read" }>,
    signal: AbortSignal,
  ): Promise<Uint8Array> {
    for (;;) {
      signal.throwIfAborted();
      const answer = await this.#ask(id, question, PIECE_MS);
      if (answer[0] === ANSWER.HERE && answer.length === question.length + 1) return answer.subarray(1);
      if (answer[0] !== ANSWER.BUSY && answer[0] !== ANSWER.GROWING) throw new WrongAnswer();
      await pause(answer[0] === ANSWER.BUSY ? PAUSE_MS : GROWING_PAUSE_MS, signal);
    }
  }

  async #ask(id: string, question: FileQuestion, timeoutMs: number): Promise<Uint8Array> {
    const { connection } = this.#options;
    return await connection.ask(connection.subject("files", id), writeJson(question), timeoutMs);
  }
}

/** Those that say they have a model of the repository first, otherwise in any order; not more than are worth asking. */
function chosen(machines: readonly Machine[], repo: string): Machine[] {
  const ranked = machines.map((machine) => ({
    machine,
    rank: machine.card.models.some(({ spec }) => spec?.startsWith(`hf:${repo}`))
      ? Math.random()
      : 1 + Math.random(),
  }));
  return ranked
    .toSorted((a, b) => a.rank - b.rank)
    .slice(0, MAX_ASKED)
    .map(({ machine }) => machine);
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
  signal.throwIfAborted();
}
