import type { JetStreamManager, StreamConfig } from "@nats-io/jetstream";
import { errors, type NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { reasonOf } from "../../errors/service-error.ts";
import type { FleetConnection } from "../fleet-connection.ts";
import {
  codeOf,
  isStreamMissing,
  NAME_IN_USE,
  NO_LEADER,
  NO_STREAM,
  NoJetStream,
  NOT_CLUSTERED,
  openJetStream,
  unreachableReason,
} from "./jetstream-errors.ts";

/** Replicas in a cluster: with three, one server may fail; with two, a disk may be lost. */
const WANTED_REPLICAS = 3;
const CLUSTER_REPLICAS = [WANTED_REPLICAS, 2, 1];

/** Result of a cluster that gives a stream fewer replicas than wanted. */
export interface TooFewReplicas {
  readonly replicas: number;
  /** Error of the server. */
  readonly why: string;
}

/**
 * Creates a missing stream with as many replicas and as much storage as the server allows; adds replicas to a stream
 * that has too few.
 * @param sizes bytes in order of preference, largest first
 */
export async function makeStream(
  manager: JetStreamManager,
  config: Partial<StreamConfig> & { name: string },
  sizes: readonly number[],
  isCluster: boolean,
): Promise<TooFewReplicas | undefined> {
  const replicas = await replicasOf(manager, config.name);
  if (replicas === undefined) return await addStream(manager, config, sizes, isCluster);
  return isCluster ? await addReplicas(manager, config.name, replicas) : undefined;
}

/** Returns undefined if there is no such stream. */
async function replicasOf(manager: JetStreamManager, name: string): Promise<number | undefined> {
  try {
    return (await manager.streams.info(name)).config.num_replicas;
  } catch (error) {
    if (codeOf(error) === NO_STREAM) return undefined;
    throw error;
  }
}

/** Adds replicas. A failure is only reported, since the stream can be used as it is. */
async function addReplicas(
  manager: JetStreamManager,
  name: string,
  replicas: number,
): Promise<TooFewReplicas | undefined> {
  let failure: unknown;
  for (const num_replicas of CLUSTER_REPLICAS.filter((count) => count > replicas)) {
    try {
      await manager.streams.update(name, { num_replicas });
      return tooFewReplicas(num_replicas, failure);
    } catch (error) {
      failure ??= error;
      // A server that does not answer will not answer the next request either.
      if (codeOf(error) === undefined) break;
    }
  }
  return tooFewReplicas(replicas, failure);
}

function tooFewReplicas(replicas: number, failure: unknown): TooFewReplicas | undefined {
  // The server may be in a cluster that JetStream does not use.
  if (failure === undefined || codeOf(failure) === NOT_CLUSTERED) return undefined;
  return { replicas, why: reasonOf(failure) };
}

/** Adds a stream; does nothing if another machine has just added it. */
async function addStream(
  manager: JetStreamManager,
  config: Partial<StreamConfig> & { name: string },
  sizes: readonly number[],
  isCluster: boolean,
): Promise<TooFewReplicas | undefined> {
  let failure: unknown;
  for (const num_replicas of isCluster ? CLUSTER_REPLICAS : [1]) {
    for (const max_bytes of sizes) {
      try {
        await manager.streams.add({ ...config, max_bytes, num_replicas });
        return isCluster && num_replicas < WANTED_REPLICAS
          ? tooFewReplicas(num_replicas, failure)
          : undefined;
      } catch (error) {
        const code = codeOf(error);
        if (code === NAME_IN_USE) return undefined;
        // A server that has not answered may still create this stream, and a smaller one would conflict with it.
        if (code === undefined || code === NO_LEADER) throw error;
        failure ??= error;
      }
    }
  }
  throw failure;
}

/** Returns the name of a stream of the fleet with a prefix. */
export function streamName(prefix: string, kind: string): string {
  return `${prefix.replaceAll(".", "_")}_${kind}`;
}

/** Delay before more replicas are requested again. */
const REPLICA_RETRY_MS = 300_000;

interface PreparedStreamsOptions {
  readonly connection: Pick<FleetConnection, "onChange">;
  readonly sharing: Pick<SharingLog, "tooFewReplicas">;
  /** Timeout of a request to the server in milliseconds. */
  readonly timeoutMs: number;
  /** Delay before a retry in milliseconds: if the streams may exist, and if there is no JetStream. */
  readonly pauseMs: { readonly there: number; readonly absent: number };
  /** Creates missing streams. */
  readonly make: (manager: JetStreamManager, isCluster: boolean) => Promise<TooFewReplicas | undefined>;
  /**
   * Called after each preparation.
   * @param error reason of a failure
   * @param existed true if the fleet was known to have the streams
   */
  readonly onPrepared?: (error: unknown, existed: boolean) => void;
}

interface Ready {
  readonly nats: NatsConnection;
  readonly manager: Promise<JetStreamManager>;
  /** Time of the next preparation: after a failure, or to get more replicas. */
  retryAt: number;
}

/** Shared JetStream streams, created or found when they are needed, and again if they have disappeared. */
export class PreparedStreams {
  readonly #options: PreparedStreamsOptions;
  #ready: Ready | undefined;
  #exist: boolean | undefined;

  constructor(options: PreparedStreamsOptions) {
    this.#options = options;
    options.connection.onChange(() => {
      if (this.#ready && this.#ready.retryAt !== Number.POSITIVE_INFINITY) this.#ready = undefined;
    });
  }

  /**
   * True once the fleet has had the streams; undefined until a server has answered. A silent server may still be
   * starting, or lack the majority of its cluster.
   */
  get exist(): boolean | undefined {
    return this.#exist;
  }

  /** Resolves when the streams can be used. @throws the reason if they cannot */
  async ready(nats: NatsConnection): Promise<void> {
    await this.#open(nats).manager;
  }

  /** Runs an action with the streams, once more if they had disappeared. */
  async use<Result>(
    nats: NatsConnection,
    action: (manager: JetStreamManager) => Promise<Result>,
  ): Promise<Result> {
    const ready = this.#open(nats);
    const manager = await ready.manager;
    try {
      return await action(manager);
    } catch (error) {
      if (!isStreamMissing(error)) throw error;
    }
    // The server may have lost its data. Another call may have noticed that already.
    if (this.#ready === ready) this.#ready = undefined;
    return await action(await this.#open(nats).manager);
  }

  #open(nats: NatsConnection): Ready {
    if (this.#ready?.nats === nats && performance.now() <= this.#ready.retryAt) return this.#ready;
    const prepared = this.#prepare(nats);
    const manager = prepared.then((each) => each.manager);
    const ready: Ready = { nats, manager, retryAt: Number.POSITIVE_INFINITY };
    this.#ready = ready;
    const retryIn = (millis: number): void => {
      ready.retryAt = performance.now() + millis;
    };
    const { there, absent } = this.#options.pauseMs;
    prepared.then(
      ({ tooFew }) => tooFew && retryIn(REPLICA_RETRY_MS),
      () => retryIn(this.#exist === false ? absent : there),
    );
    return ready;
  }

  async #prepare(
    nats: NatsConnection,
  ): Promise<{ manager: JetStreamManager; tooFew: TooFewReplicas | undefined }> {
    const { timeoutMs, make, sharing, onPrepared } = this.#options;
    const existed = this.#exist === true;
    try {
      const manager = await openJetStream(nats, timeoutMs);
      const tooFew = await make(manager, nats.info?.cluster !== undefined);
      if (tooFew) sharing.tooFewReplicas(tooFew);
      this.#exist = true;
      onPrepared?.(undefined, existed);
      return { manager, tooFew };
    } catch (error) {
      if (codeOf(error) === NO_LEADER) this.#exist = true;
      else if (!(error instanceof errors.TimeoutError)) this.#exist ??= false;
      onPrepared?.(error, existed);
      throw error;
    }
  }
}

/** Consequences of missing JetStream, by what machines share. */
const CONSEQUENCES = {
  batches: "files and batches are not shared now",
  responses: "this machine keeps responses for itself alone",
};
type Shared = keyof typeof CONSEQUENCES;

/**
 * Logs problems of shared data once, whichever part notices them first; and once more if it turns out that there is no
 * JetStream, so that waiting does not help.
 */
export class SharingLog {
  readonly #server: { readonly servers: string; readonly problem: string | undefined };
  readonly #logger: Pick<Logger, "warn" | "info">;
  /** Current problems, as logged. */
  readonly #problems = new Map<Shared, string>();
  #hasWarnedReplicas = false;

  constructor(
    server: { readonly servers: string; readonly problem: string | undefined },
    logger: Pick<Logger, "warn" | "info">,
  ) {
    this.#server = server;
    this.#logger = logger;
  }

  /** Returns what is not shared now and why, as far as it is known. */
  get problem(): string | undefined {
    return this.#problems.get("batches") ?? this.#problems.get("responses");
  }

  failed(what: Shared, error: unknown): void {
    const hasNothing = error instanceof NoJetStream;
    const consequence = hasNothing ? "files, batches and responses are not shared now" : CONSEQUENCES[what];
    const problem = `${consequence}, since ${unreachableReason(error, this.#server)}`;
    const wasLogged = hasNothing ? this.#problems.get(what) === problem : this.#problems.has(what);
    for (const each of hasNothing ? (["batches", "responses"] as const) : [what])
      this.#problems.set(each, problem);
    if (!wasLogged) this.#logger.warn(`fleet: ${problem}`);
  }

  /** Clears a problem. @returns true if it had been logged */
  recovered(what: Shared): boolean {
    return this.#problems.delete(what);
  }

  tooFewReplicas({ replicas, why }: TooFewReplicas): void {
    if (this.#hasWarnedReplicas) return;
    this.#hasWarnedReplicas = true;
    this.#logger.warn(
      `fleet: what machines share is kept on ${replicas === 1 ? "one server" : `${replicas} servers`} instead of three, since the ` +
        `cluster of the fleet's NATS server at ${this.#server.servers} refuses more (${why}): have three of its servers run ` +
        "with JetStream and room for it; within five minutes, it is on three then",
    );
  }
}
