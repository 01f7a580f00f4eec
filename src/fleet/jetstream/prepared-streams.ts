import type { JetStreamManager } from "@nats-io/jetstream";
import { errors, type NatsConnection } from "@nats-io/transport-node";
import type { FleetConnection } from "../fleet-connection.ts";
import { NO_LEADER } from "./ask-again.ts";
import { codeOf, isWithoutStream, openJetStream } from "./jetstream-errors.ts";
import type { FewCopies } from "./make-stream.ts";
import type { SharingLog } from "./sharing-log.ts";

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
