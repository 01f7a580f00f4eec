import type { JetStreamManager, StreamConfig } from "@nats-io/jetstream";
import { errors, type NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { reasonOf } from "../../errors/reason-of.ts";
import type { FleetConnection } from "../fleet-connection.ts";
import {
  codeOf,
  isWithoutStream,
  NAME_IN_USE,
  NO_LEADER,
  NO_STREAM,
  NoJetStream,
  NOT_CLUSTERED,
  openJetStream,
  unreachableReason,
} from "./jetstream-errors.ts";

/** Copies in a cluster: with three, one server may fail; with two, a disk may be lost. */
const WANTED_COPIES = 3;
const CLUSTER_COPIES = [WANTED_COPIES, 2, 1];

/** A cluster that does not give a stream as many copies as it should have. */
export interface FewCopies {
  readonly copies: number;
  /** What the server says. */
  readonly why: string;
}

/**
 * Makes a stream that is missing, with as many copies and as much room as the server gives, and more copies of one that has
 * too few.
 * @param sizes bytes, from the largest
 */
export async function makeStream(
  manager: JetStreamManager,
  config: Partial<StreamConfig> & { name: string },
  sizes: readonly number[],
  isCluster: boolean,
): Promise<FewCopies | undefined> {
  const copies = await copiesOf(manager, config.name);
  if (copies === undefined) return await addStream(manager, config, sizes, isCluster);
  return isCluster ? await addCopies(manager, config.name, copies) : undefined;
}

/** Undefined: there is no such stream. */
async function copiesOf(manager: JetStreamManager, name: string): Promise<number | undefined> {
  try {
    return (await manager.streams.info(name)).config.num_replicas;
  } catch (error) {
    if (codeOf(error) === NO_STREAM) return undefined;
    throw error;
  }
}

/** A stream can be used with the copies that it has: whatever fails here is only told. */
async function addCopies(
  manager: JetStreamManager,
  name: string,
  copies: number,
): Promise<FewCopies | undefined> {
  let failure: unknown;
  for (const num_replicas of CLUSTER_COPIES.filter((count) => count > copies)) {
    try {
      await manager.streams.update(name, { num_replicas });
      return tooFew(num_replicas, failure);
    } catch (error) {
      failure ??= error;
      // One that does not answer this does not answer the next one either.
      if (codeOf(error) === undefined) break;
    }
  }
  return tooFew(copies, failure);
}

function tooFew(copies: number, failure: unknown): FewCopies | undefined {
  // A server may have a cluster of which JetStream is no part.
  if (failure === undefined || codeOf(failure) === NOT_CLUSTERED) return undefined;
  return { copies, why: reasonOf(failure) };
}

/** Adds nothing, if another machine has just done so. */
async function addStream(
  manager: JetStreamManager,
  config: Partial<StreamConfig> & { name: string },
  sizes: readonly number[],
  isCluster: boolean,
): Promise<FewCopies | undefined> {
  let failure: unknown;
  for (const num_replicas of isCluster ? CLUSTER_COPIES : [1]) {
    for (const max_bytes of sizes) {
      try {
        await manager.streams.add({ ...config, max_bytes, num_replicas });
        return isCluster && num_replicas < WANTED_COPIES ? tooFew(num_replicas, failure) : undefined;
      } catch (error) {
        const code = codeOf(error);
        if (code === NAME_IN_USE) return undefined;
        // A server that has not answered may make it all the same; a smaller one would be in its way.
        if (code === undefined || code === NO_LEADER) throw error;
        failure ??= error;
      }
    }
  }
  throw failure;
}

/** Before more copies are asked for again. */
const RAISE_AFTER_MS = 300_000;

export interface PreparedStreamsOptions {
  readonly connection: Pick<FleetConnection, "onChange">;
  readonly sharing: Pick<SharingLog, "fewCopies">;
  /** Of a request to the server, in milliseconds. */
  readonly timeoutMs: number;
  /** After a failure, until they are prepared again: where they may be, and where there is no JetStream. */
  readonly pauseMs: { readonly there: number; readonly absent: number };
  /** Makes those that are missing. */
  readonly make: (manager: JetStreamManager, isCluster: boolean) => Promise<FewCopies | undefined>;
  /**
   * Told of each preparation.
   * @param error why it has failed
   * @param wasThere whether the fleet was known to have them
   */
  readonly onPrepared?: (error: unknown, wasThere: boolean) => void;
}

interface Ready {
  readonly nats: NatsConnection;
  readonly manager: Promise<JetStreamManager>;
  /** When they are prepared again: after a failure, or when they may get more copies. */
  lookAgainAt: number;
}

/** Streams of JetStream that machines share: they are made, or found, when they are needed, and again when they are gone. */
export class PreparedStreams {
  readonly #options: PreparedStreamsOptions;
  #ready: Ready | undefined;
  #areThere: boolean | undefined;

  constructor(options: PreparedStreamsOptions) {
    this.#options = options;
    options.connection.onChange(() => {
      if (this.#ready && this.#ready.lookAgainAt !== Number.POSITIVE_INFINITY) this.#ready = undefined;
    });
  }

  /**
   * Whether the fleet has them, once they have been there; undefined: no server has said yet. One that says nothing may still
   * be starting, or be one of too few of its cluster.
   */
  get areThere(): boolean | undefined {
    return this.#areThere;
  }

  /** Resolves when they can be used. @throws why they cannot */
  async ready(nats: NatsConnection): Promise<void> {
    await this.#open(nats).manager;
  }

  /** Does something with them, once more if they were gone. */
  async use<Result>(
    nats: NatsConnection,
    action: (manager: JetStreamManager) => Promise<Result>,
  ): Promise<Result> {
    const ready = this.#open(nats);
    const manager = await ready.manager;
    try {
      return await action(manager);
    } catch (error) {
      if (!isWithoutStream(error)) throw error;
    }
    // The server may have begun anew. Another use may have seen that already.
    if (this.#ready === ready) this.#ready = undefined;
    return await action(await this.#open(nats).manager);
  }

  #open(nats: NatsConnection): Ready {
    if (this.#ready?.nats === nats && performance.now() <= this.#ready.lookAgainAt) return this.#ready;
    const prepared = this.#prepare(nats);
    const manager = prepared.then((each) => each.manager);
    const ready: Ready = { nats, manager, lookAgainAt: Number.POSITIVE_INFINITY };
    this.#ready = ready;
    const lookAgainIn = (millis: number): void => {
      ready.lookAgainAt = performance.now() + millis;
    };
    const { there, absent } = this.#options.pauseMs;
    prepared.then(
      ({ few }) => few && lookAgainIn(RAISE_AFTER_MS),
      () => lookAgainIn(this.#areThere === false ? absent : there),
    );
    return ready;
  }

  async #prepare(nats: NatsConnection): Promise<{ manager: JetStreamManager; few: FewCopies | undefined }> {
    const { timeoutMs, make, sharing, onPrepared } = this.#options;
    const wasThere = this.#areThere === true;
    try {
      const manager = await openJetStream(nats, timeoutMs);
      const few = await make(manager, nats.info?.cluster !== undefined);
      if (few) sharing.fewCopies(few);
      this.#areThere = true;
      onPrepared?.(undefined, wasThere);
      return { manager, few };
    } catch (error) {
      if (codeOf(error) === NO_LEADER) this.#areThere = true;
      else if (!(error instanceof errors.TimeoutError)) this.#areThere ??= false;
      onPrepared?.(error, wasThere);
      throw error;
    }
  }
}

/** What machines share by JetStream, and what is so without it. */
const LOSSES = {
  batches: "files and batches are not shared now",
  responses: "this machine keeps responses for itself alone",
};
type Shared = keyof typeof LOSSES;

/**
 * Tells once what is wrong with what machines share, whoever notices first; and once more if waiting turns out not to help,
 * since there is no JetStream.
 */
export class SharingLog {
  readonly #server: { readonly where: string; readonly problem: string | undefined };
  readonly #logger: Pick<Logger, "warn" | "info">;
  /** What is wrong now, as it was told. */
  readonly #told = new Map<Shared, string>();
  #hasFewCopies = false;

  constructor(
    server: { readonly where: string; readonly problem: string | undefined },
    logger: Pick<Logger, "warn" | "info">,
  ) {
    this.#server = server;
    this.#logger = logger;
  }

  /** What is not shared now, and why, as far as somebody has noticed. */
  get problem(): string | undefined {
    return this.#told.get("batches") ?? this.#told.get("responses");
  }

  failed(what: Shared, error: unknown): void {
    const hasNothing = error instanceof NoJetStream;
    const loss = hasNothing ? "files, batches and responses are not shared now" : LOSSES[what];
    const problem = `${loss}, since ${unreachableReason(error, this.#server)}`;
    const wasTold = hasNothing ? this.#told.get(what) === problem : this.#told.has(what);
    for (const each of hasNothing ? (["batches", "responses"] as const) : [what])
      this.#told.set(each, problem);
    if (!wasTold) this.#logger.warn(`fleet: ${problem}`);
  }

  /** @returns whether it was told that it does not */
  works(what: Shared): boolean {
    return this.#told.delete(what);
  }

  fewCopies({ copies, why }: FewCopies): void {
    if (this.#hasFewCopies) return;
    this.#hasFewCopies = true;
    this.#logger.warn(
      `fleet: what machines share is kept on ${copies === 1 ? "one server" : `${copies} servers`} instead of three, since the ` +
        `cluster of the fleet's NATS server at ${this.#server.where} refuses more (${why}): have three of its servers run ` +
        "with JetStream and room for it; within five minutes, it is on three then",
    );
  }
}
