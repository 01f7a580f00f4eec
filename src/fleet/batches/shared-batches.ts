import type { Logger } from "pino";
import { BatchDesk, batchEnded } from "../../batches/batch-desk.ts";
import type { BatchFormat, RunLine } from "../../batches/batch-format.ts";
import type { RunOutcome } from "../../batches/batch.ts";
import type { LinePool } from "../../batches/line-pool.ts";
import { removeExpired } from "../../batches/remove-expired.ts";
import type { Config } from "../../config/schema.ts";
import type { ServiceEvents } from "../../events/service-events.ts";
import { Answers } from "./answers.ts";
import type { BatchModels } from "./batch-models.ts";
import type { JetStreamPlace } from "./jetstream-place.ts";
import { Leases } from "./leases.ts";
import { LineRuns } from "./line-runs.ts";
import { PieceFolder } from "./piece-folder.ts";
import { newSharedId } from "./shared-ids.ts";
import { SharedRunner } from "./shared-runner.ts";
import { SharedStore } from "./shared-store.ts";
import { ToldRefusals } from "./told-refusals.ts";

const SWEEP_MS = 10 * 60_000;

export interface SharedBatchesOptions {
  readonly config: Pick<Config, "batches" | "http">;
  readonly formats: Readonly<Record<string, BatchFormat>>;
  readonly events: Pick<ServiceEvents, "emit">;
  readonly logger: Pick<Logger, "info" | "warn" | "error">;
  /** Told when a line is done here. */
  readonly onLine: (outcome: RunOutcome) => void;
  readonly place: JetStreamPlace;
  /** Of this machine, for one run of its daemon. */
  readonly selfId: string;
  readonly models: BatchModels;
  /** Runs the lines of this machine. */
  readonly pool: LinePool;
  readonly runLine: RunLine;
  /** Unix milliseconds. */
  readonly now?: () => number;
}

/** Files and batches that all machines share, with this machine's work on them. */
export class SharedBatches {
  readonly desk: BatchDesk;
  readonly #options: SharedBatchesOptions;
  readonly #leases: Leases;
  readonly #store: SharedStore;
  readonly #folder: PieceFolder;
  readonly #answers: Answers;
  readonly #runner: SharedRunner;
  readonly #sweep: NodeJS.Timeout;

  constructor(options: SharedBatchesOptions) {
    const { config, place, selfId, events, logger, now = Date.now } = options;
    this.#options = options;
    this.#leases = new Leases(place, selfId);
    this.#answers = new Answers(place);
    this.#folder = new PieceFolder(place);
    this.#store = new SharedStore({ place, answers: this.#answers, leases: this.#leases, now });
    const limits = { maxLines: config.batches.max_lines, maxLineBytes: config.http.body_limit };
    const parts = { store: this.#store, folder: this.#folder, now };
    this.#runner = new SharedRunner({
      ...options,
      ...parts,
      answers: this.#answers,
      leases: this.#leases,
      refusals: new ToldRefusals(place, this.#answers),
      runs: new LineRuns(place),
      limits,
      onEnd: (batch) => events.emit(batchEnded(batch)),
    });
    const { max_total_size: ownBytes } = config.batches;
    this.desk = new BatchDesk({
      ...parts,
      // Zero refuses all; any other bound is that of the machine's own disk.
      config: { ...config.batches, max_total_size: ownBytes && Number.POSITIVE_INFINITY },
      events,
      runner: this.#runner,
      newId: newSharedId,
    });
    this.#sweep = setInterval(() => {
      this.sweep().catch((error: unknown) =>
        logger.warn({ err: error }, "Expired files of the fleet's batches stay for now"),
      );
    }, SWEEP_MS).unref();
  }

  /** Batches that are led from here. */
  get running(): number {
    return this.#runner.running;
  }

  async stop(): Promise<void> {
    clearInterval(this.#sweep);
    await this.#runner.stop();
  }

  /** Removes what is too old, and what machines have left that were killed; one machine does it. */
  async sweep(): Promise<void> {
    const { place, config, now = Date.now } = this.#options;
    if ((await place.home()) !== "fleet" || !(await this.#leases.hold("sweep", true))) return;
    await removeExpired({ store: this.#store, folder: this.#folder }, now(), config.batches.retention);
    const known = new Set((await this.#store.allFiles()).map(({ id }) => id));
    await this.#folder.sweep((id) => known.has(id), now());
    for (const id of await this.#store.unled()) await this.#leases.hold(id, true);
    // In this order: a batch that begins meanwhile has a lease before it has answers.
    const answered = await this.#answers.batches();
    const open = new Set(await this.#leases.ids());
    for (const id of answered) if (!open.has(id)) await this.#answers.remove(id);
  }
}
