import { abortable, pause } from "../../async/promises.ts";
import type { HubPeers, PeerListing, SharedFile } from "../../models/hub/cache/cached-files.ts";
import type { FleetConnection } from "../fleet-connection.ts";
import { readJson, writeJson } from "../wire-format.ts";
import type { Member } from "../members.ts";
import type { Presence } from "../presence.ts";
import { ANSWER, type FileRequest, listingSchema, CHUNK_BYTES } from "./file-server.ts";

/** Chunks requested ahead: 4 MiB, which saturates a local network of 10 Gbit/s. */
const CHUNKS_AHEAD = 8;
/** Timeout of a request, and of a chunk, which may wait behind those of other machines. */
const REQUEST_TIMEOUT_MS = 3000;
const CHUNK_TIMEOUT_MS = 10_000;
/** Time that a started transfer waits for the NATS server before the hub is used instead. */
const RECONNECT_TIMEOUT_MS = 15_000;
/** Time that it then waits for a machine with the file. */
const RETURN_TIMEOUT_MS = 2500;
const POLL_INTERVAL_MS = 100;
/** Failures without any chunk in between after which a machine is not asked again for a file. */
const MAX_FAILURES = 2;
/** Delay between two tries of a machine that is busy or has failed. */
const RETRY_DELAY_MS = 200;
/** Delay before a chunk is requested again that its machine is still downloading. */
const PARTIAL_RETRY_DELAY_MS = 500;
/**
 * Many machines may start the same download at the same time. For files of this size, each waits for a random time
 * before it uses the hub, so that the others then find the one that started first.
 */
const LARGE_BYTES = 64 * 1024 * 1024;
const MAX_START_DELAY_MS = 1000;
/** Maximum number of machines that are asked for a file. */
const MAX_MACHINES = 64;

interface FileFetcherOptions {
  readonly connection: FleetConnection;
  readonly presence: Pick<Presence, "machines" | "get" | "onChange">;
}

/** Thrown if a machine does not have the file after all, or sends wrong data. */
class WrongAnswer extends Error {
  override readonly name = "WrongAnswer";
}

/** Fetches files from other machines in individually requested chunks, which limits the data in flight. */
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
      const { id, name } = machine.info;
      try {
        for await (const chunk of this.#chunks(id, file, position, signal)) {
          if (failures.get(id) !== 0) onMachine(name);
          failures.set(id, 0);
          position += chunk.length;
          yield chunk;
        }
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof WrongAnswer) failures.set(id, MAX_FAILURES);
        else {
          failures.set(id, (failures.get(id) ?? 0) + 1);
          await pause(RETRY_DELAY_MS, signal);
        }
      }
    }
  }

  async list(repo: string, revision: string, signal: AbortSignal): Promise<readonly PeerListing[]> {
    const { machines } = this.#options.presence;
    const found = await Promise.all(
      pickMachines(machines, repo).map(async ({ info }) => {
        const answer = await this.#ask(info.id, { kind: "list", repo, revision });
        const listing = answer?.[0] === ANSWER.HERE ? readJson(listingSchema, answer.subarray(1)) : undefined;
        return listing?.repo === repo ? [{ machine: info.name, listing }] : [];
      }),
    );
    signal.throwIfAborted();
    return found.flat();
  }

  async #findLater(file: SharedFile, signal: AbortSignal): Promise<Member | undefined> {
    if (file.size < LARGE_BYTES || this.#options.presence.machines.length === 0) return undefined;
    await pause(Math.random() * MAX_START_DELAY_MS, signal);
    return await this.#find(file, new Map(), signal);
  }

  /** Finds a machine that has the file, at random. Waits if a transfer has already begun. */
  async #find(
    file: SharedFile,
    failures: ReadonlyMap<string, number>,
    signal: AbortSignal,
  ): Promise<Member | undefined> {
    const { connection, presence } = this.#options;
    const [reconnectMs, returnMs] = failures.size > 0 ? [RECONNECT_TIMEOUT_MS, RETURN_TIMEOUT_MS] : [0, 0];
    const request = { kind: "has", repo: file.repo, digest: file.digest, size: file.size } as const;
    for (let since = performance.now(), was = connection.isConnected; ;) {
      const usable = presence.machines.filter(({ info }) => (failures.get(info.id) ?? 0) < MAX_FAILURES);
      const answers = await Promise.all(
        pickMachines(usable, file.repo).map(async (machine) => {
          const answer = await this.#ask(machine.info.id, request);
          return { machine, answer: answer?.[0] };
        }),
      );
      signal.throwIfAborted();
      const complete = answers.filter(({ answer }) => answer === ANSWER.HERE);
      // A machine that is downloading the file sends what it has; a second download would not be faster.
      const found =
        complete.length > 0 ? complete : answers.filter(({ answer }) => answer === ANSWER.GROWING);
      if (found.length > 0) return found[Math.floor(Math.random() * found.length)]?.machine;
      const { isConnected } = connection;
      if (isConnected && !was) since = performance.now();
      was = isConnected;
      if (performance.now() - since >= (isConnected ? returnMs : reconnectMs)) return undefined;
      await pause(POLL_INTERVAL_MS, signal);
    }
  }

  /** Yields the chunks of one machine in order; throws if it stops sending. */
  async *#chunks(
    id: string,
    file: SharedFile,
    offset: number,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const { presence, connection } = this.#options;
    const gone = new AbortController();
    const endWatch = presence.onChange(() => {
      if (!presence.get(id)) gone.abort(new Error("the machine is gone"));
    });
    const ended = AbortSignal.any([signal, gone.signal]);
    const pending: Promise<Uint8Array>[] = [];
    let next = offset;
    try {
      for (;;) {
        while (pending.length < CHUNKS_AHEAD && next < file.size) {
          const length = Math.min(CHUNK_BYTES, connection.maxPayload - 1, file.size - next);
          const chunk = this.#chunk(id, { kind: "read", ...file, offset: next, length }, ended);
          // A chunk may fail before it is awaited, or after the transfer has ended.
          chunk.catch(() => undefined);
          pending.push(chunk);
          next += length;
        }
        const first = pending.shift();
        if (first === undefined) return;
        yield await abortable(first, ended);
      }
    } finally {
      endWatch();
      gone.abort(new Error("nobody wants the rest"));
    }
  }

  async #chunk(
    id: string,
    request: Extract<FileRequest, { kind: "read" }>,
    signal: AbortSignal,
  ): Promise<Uint8Array> {
    for (;;) {
      signal.throwIfAborted();
      const answer = await this.#request(id, request, CHUNK_TIMEOUT_MS);
      if (answer[0] === ANSWER.HERE && answer.length === request.length + 1) return answer.subarray(1);
      if (answer[0] !== ANSWER.BUSY && answer[0] !== ANSWER.GROWING) throw new WrongAnswer();
      await pause(answer[0] === ANSWER.BUSY ? RETRY_DELAY_MS : PARTIAL_RETRY_DELAY_MS, signal);
    }
  }

  /** Returns undefined if the machine does not answer. */
  async #ask(id: string, request: FileRequest): Promise<Uint8Array | undefined> {
    return await this.#request(id, request, REQUEST_TIMEOUT_MS).catch(() => undefined);
  }

  async #request(id: string, request: FileRequest, timeoutMs: number): Promise<Uint8Array> {
    const { connection } = this.#options;
    return await connection.request(connection.subject("files", id), writeJson(request), timeoutMs);
  }
}

/** Returns the machines to ask: those that list a model of the repository first, otherwise in random order. */
function pickMachines(machines: readonly Member[], repo: string): Member[] {
  const ranked = machines.map((machine) => ({
    machine,
    rank: machine.info.models.some(({ spec }) => spec?.startsWith(`hf:${repo}`))
      ? Math.random()
      : 1 + Math.random(),
  }));
  return ranked
    .toSorted((a, b) => a.rank - b.rank)
    .slice(0, MAX_MACHINES)
    .map(({ machine }) => machine);
}
