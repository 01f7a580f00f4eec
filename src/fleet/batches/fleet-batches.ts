import type { Logger } from "pino";
import {
  type BatchBackend,
  batchEnded,
  BatchService,
  type BatchServiceOptions,
} from "../../batches/batch-service.ts";
import type { Page, PageQuery } from "../../batches/batch-store.ts";
import type { BatchFormat, RunLine, RunOutcome } from "../../batches/batch.ts";
import type { LineScheduler } from "../../batches/line-scheduler.ts";
import { type LocalBatches, removeExpired } from "../../batches/local-batches.ts";
import type { Config } from "../../config/schema.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { AnswerStore } from "./answer-store.ts";
import type { BatchModels } from "./batch-models.ts";
import { ReportedRefusals } from "./batch-notices.ts";
import { isSharedId, newSharedId } from "./batch-record.ts";
import { ChunkFolder } from "./chunked-files.ts";
import type { JetStreamStore } from "./jetstream-store.ts";
import { Leases } from "./leases.ts";
import { LineRuns } from "./line-runs.ts";
import { SharedRunner } from "./shared-runner.ts";
import { SharedStore } from "./shared-store.ts";

export interface FleetBatchesOptions
  extends Omit<SharedBackendOptions, "scheduler" | "runLine" | "now">, Pick<BatchServiceOptions, "now"> {
  /** Batches of this machine, used for older items and where the fleet has no JetStream. */
  readonly local: LocalBatches;
}

/** Files and batches of the fleet, together with those of this machine; ids distinguish them. */
export class FleetBatches extends BatchService {
  readonly #options: FleetBatchesOptions;
  #shared: SharedBackend | undefined;

  constructor(options: FleetBatchesOptions) {
    super({ ...options, config: options.config.batches });
    this.#options = options;
  }

  get running(): number {
    return this.#options.local.running + (this.#shared?.runner.running ?? 0);
  }

  async start(runLine: RunLine): Promise<void> {
    const { local } = this.#options;
    await local.start(runLine);
    this.#shared = new SharedBackend({
      ...this.#options,
      scheduler: local.scheduler,
      runLine,
      now: this.now,
    });
  }

  /** Removes expired items of the fleet. */
  async sweep(): Promise<void> {
    await this.#shared?.sweep();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#options.local.stop(), this.#shared?.stop()]);
  }

  async close(): Promise<void> {
    await Promise.all([this.#options.local.close(), this.#shared?.stop()]);
  }

  override async use<Result>(
    id: string | undefined,
    action: (backend: BatchBackend) => Promise<Result>,
  ): Promise<Result> {
    const isShared = id === undefined ? await this.#hasJetStream() : isSharedId(id);
    return isShared ? await action(this.#sharedBackend()) : await this.#options.local.use(id, action);
  }

  /** Lists local items and the fleet's as one list; the fleet's count as newer. */
  protected override async list<Item extends { readonly id: string }>(
    query: PageQuery,
    read: (backend: BatchBackend, query: PageQuery) => Promise<Page<Item>>,
  ): Promise<Page<Item>> {
    const ask = async (isShared: boolean, page: PageQuery): Promise<Page<Item>> =>
      isShared
        ? await read(this.#sharedBackend(), page)
        : await this.#options.local.use(undefined, async (backend) => await read(backend, page));
    if (!(await this.#hasJetStream())) return await ask(false, query);
    const { limit, descending, after, before } = query;
    const firstPageQuery = { ...query, after: undefined, before: undefined };
    const isBackward = after === undefined && before !== undefined;
    const cursor = after ?? before;
    // The page begins in the fleet's list or in the local one.
    const startsShared = descending !== isBackward;
    if (cursor !== undefined && isSharedId(cursor) !== startsShared) return await ask(!startsShared, query);
    const page = await ask(startsShared, query);
    if (page.items.length === limit) {
      const hasMore =
        page.hasMore || (await ask(!startsShared, { ...firstPageQuery, limit: 1 })).items.length > 0;
      return { ...page, hasMore };
    }
    // The items right before the first of the second list are the last of the first list.
    const rest = await ask(!startsShared, {
      ...firstPageQuery,
      descending: startsShared,
      limit: limit - page.items.length,
    });
    const items = isBackward ? rest.items.toReversed().concat(page.items) : [...page.items, ...rest.items];
    return { items, hasMore: rest.hasMore };
  }

  async #hasJetStream(): Promise<boolean> {
    return (await this.#options.jetStream.primaryStore()) !== "machine";
  }

  #sharedBackend(): SharedBackend {
    if (this.#shared) return this.#shared;
    throw new ServiceError("shutting_down", "The daemon has not started yet.");
  }
}

const SWEEP_INTERVAL_MS = 10 * 60_000;

interface SharedBackendOptions extends Omit<BatchServiceOptions, "config"> {
  readonly config: Pick<Config, "batches" | "http">;
  readonly formats: Readonly<Record<string, BatchFormat>>;
  readonly logger: Pick<Logger, "info" | "warn" | "error">;
  /** Called when a line is done on this machine. */
  readonly onLine: (outcome: RunOutcome) => void;
  readonly jetStream: JetStreamStore;
  /** Id of this machine for one run of its daemon. */
  readonly selfId: string;
  readonly models: BatchModels;
  /** Runs the lines of this machine. */
  readonly scheduler: LineScheduler;
  readonly runLine: RunLine;
  readonly now: () => number;
}

/** Files and batches shared by all machines, and this machine's work on them. */
class SharedBackend implements BatchBackend {
  readonly store: SharedStore;
  readonly folder: ChunkFolder;
  readonly runner: SharedRunner;
  readonly newId = newSharedId;
  readonly maxTotalBytes: number;
  readonly incoming = { bytes: 0 };
  readonly #options: SharedBackendOptions;
  readonly #leases: Leases;
  readonly #answers: AnswerStore;
  readonly #sweep: NodeJS.Timeout;

  constructor(options: SharedBackendOptions) {
    const { config, jetStream, selfId, events, logger, now } = options;
    this.#options = options;
    this.#leases = new Leases(jetStream, selfId);
    this.#answers = new AnswerStore(jetStream);
    this.folder = new ChunkFolder(jetStream);
    this.store = new SharedStore({ jetStream, answers: this.#answers, leases: this.#leases, now });
    // Zero disables uploads; any other limit concerns only this machine's disk.
    this.maxTotalBytes = config.batches.max_total_size && Number.POSITIVE_INFINITY;
    this.runner = new SharedRunner({
      ...options,
      store: this.store,
      folder: this.folder,
      answers: this.#answers,
      leases: this.#leases,
      refusals: new ReportedRefusals(jetStream, this.#answers),
      runs: new LineRuns(jetStream),
      limits: { maxLines: config.batches.max_lines, maxLineBytes: config.http.body_limit },
      onEnd: (batch) => events.emit(batchEnded(batch)),
    });
    this.#sweep = setInterval(() => {
      this.sweep().catch((error: unknown) =>
        logger.warn({ err: error }, "Cannot remove expired files of the fleet's batches now"),
      );
    }, SWEEP_INTERVAL_MS).unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#sweep);
    await this.runner.stop();
  }

  /** Removes expired items, and what killed machines have left; one machine does it at a time. */
  async sweep(): Promise<void> {
    const { jetStream, config, now } = this.#options;
    if ((await jetStream.primaryStore()) !== "fleet" || !(await this.#leases.acquire("sweep", true))) return;
    await removeExpired(this, now(), config.batches.retention);
    const known = new Set((await this.store.allFiles()).map(({ id }) => id));
    await this.folder.sweep((id) => known.has(id), now());
    for (const id of await this.store.withoutLease()) await this.#leases.acquire(id, true);
    // In this order: a new batch has a lease before it has answers.
    const answered = await this.#answers.batches();
    const open = new Set(await this.#leases.ids());
    for (const id of answered) if (!open.has(id)) await this.#answers.remove(id);
  }
}
