import type { Logger } from "pino";
import {
  type AnsweredLine,
  type BatchFormat,
  type FinalStatus,
  formatOf,
  type InputProblem,
  type LineCounts,
  UNFINISHED_STATUSES,
  type PendingLine,
} from "../../batches/batch.ts";
import type { FileContents } from "../../batches/batch-store.ts";
import { readInput } from "../../batches/input-file.ts";
import { removeUnrecorded, writeOutput } from "../../batches/batch-runner.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { AnswerStore } from "./answer-store.ts";
import type { BatchModels } from "./batch-models.ts";
import { type LineGroup, newNonce, newOutputId, type SharedBatch } from "./batch-record.ts";
import { isUnreachable } from "../jetstream/jetstream-errors.ts";
import type { LineRuns } from "./line-runs.ts";
import type { SharedStore } from "./shared-store.ts";

const INPUT_MISSING = "file_not_found";

export interface LeadOptions {
  readonly store: SharedStore;
  readonly folder: FileContents;
  readonly answers: AnswerStore;
  readonly runs: LineRuns;
  readonly models: BatchModels;
  readonly formats: Readonly<Record<string, BatchFormat>>;
  readonly limits: { readonly maxLines: number; readonly maxLineBytes: number };
  readonly logger: Pick<Logger, "warn">;
  /** Returns Unix milliseconds. */
  readonly now: () => number;
}

interface ReadLines {
  readonly total: number;
  readonly problems: SharedBatch["problems"];
  readonly lines: readonly PendingLine[];
}

/** Steps of the machine that leads a batch. Each can be repeated after any interruption, also by another machine. */
export class BatchLeader {
  readonly #options: LeadOptions;

  constructor(options: LeadOptions) {
    this.#options = options;
  }

  /** Validates and queues the lines; returns the changed batch, or undefined if that is not known yet. */
  async validate(batch: SharedBatch): Promise<SharedBatch | undefined> {
    const { store, runs } = this.#options;
    const { total, problems, lines } = await this.#read(batch);
    if (problems.length > 0)
      return await store.change(batch.id, ["validating"], { status: "failed", problems });
    const byGroup = await this.#groupByModel(lines);
    if (!byGroup) return undefined;
    const { id } = batch;
    const queued = { id, queue: newNonce() };
    const earlier = await runs.queues(id);
    // From now on no earlier leader can make machines use its queue, even if it has not noticed the loss of its lease.
    if (!(await store.change(id, ["validating"], { queue: queued.queue }))) return undefined;
    for (const [queue, numbers] of earlier) await runs.remove({ id, queue }, numbers);
    for (const [index, { lines: groupLines }] of byGroup.entries()) await runs.add(queued, index, groupLines);
    const groups = byGroup.map(({ group }) => group);
    const started = await store.update(id, ({ status, queue }) =>
      status === "validating" && queue === queued.queue
        ? { status: "in_progress", total, groups }
        : undefined,
    );
    if (started) return started;
    // The update may have succeeded although its acknowledgment was lost.
    const found = await store.recorded(id);
    if (found?.queue === queued.queue && found.status === "in_progress") return found;
    await runs.remove(queued, groups.keys());
    return undefined;
  }

  /** Returns true if all lines are answered. */
  async isAnswered({ id, total }: SharedBatch): Promise<boolean> {
    return (await this.#options.answers.tally(id)).answered.size >= total;
  }

  /**
   * Queues lines again that are neither answered nor queued: after a power failure the server may have lost them.
   * @param isLeading returns true if this machine still leads the batch after reading the lines
   */
  async requeue(batch: SharedBatch, isLeading: () => boolean): Promise<void> {
    const { store, answers, runs, logger } = this.#options;
    if (await runs.hasAny(batch)) return;
    const { answered } = await answers.tally(batch.id);
    if (answered.size >= batch.total) return;
    const { lines, problems } = await this.#read(batch);
    if (problems.some(isInputMissing)) {
      await store.change(batch.id, ["in_progress"], { status: "finalizing", endsAs: "failed" });
      return;
    }
    if (!isLeading() || (await runs.hasAny(batch))) return;
    const lost = lines.filter(({ number }) => !answered.has(number));
    logger.warn(
      { batch: batch.id, lines: lost.length },
      "fleet: lines of a batch were lost and are queued again",
    );
    for (const [group, { name, model }] of batch.groups.entries()) {
      const isKnown = (line: PendingLine): boolean =>
        batch.groups.some((each) => each.model && each.name === line.model);
      const groupLines = lost.filter((line) => (model ? line.model === name : !isKnown(line)));
      if (groupLines.length > 0) await runs.add(batch, group, groupLines.toSorted(bySortKey));
    }
  }

  /** Writes the output of a batch and ends it; returns undefined if another machine has, or if lines are missing. */
  async finish(batch: SharedBatch): Promise<SharedBatch | undefined> {
    const { store, folder, answers, formats, now } = this.#options;
    const format = formatOf(formats, batch);
    const endsAs: FinalStatus = batch.endsAs ?? (batch.status === "cancelling" ? "cancelled" : "completed");
    const { lines, problems } = await this.#read(batch);
    const missingInput = problems.filter(isInputMissing);
    if (missingInput.length > 0)
      return await store.change(batch.id, UNFINISHED_STATUSES, { status: "failed", problems: missingInput });
    const { answered, counts, usage } = await snapshot(answers, batch.id);
    const numbers = new Set(lines.map(({ number }) => number));
    const unexpected = [...answered.keys()].filter((number) => !numbers.has(number));
    if (unexpected.length > 0) {
      await answers.discard(batch.id, unexpected);
      return undefined;
    }
    const missing = lines.length - answered.size;
    if (endsAs === "completed" && missing > 0) {
      await store.change(batch.id, ["finalizing"], { status: "in_progress" });
      return undefined;
    }
    const remainingOutcome = endsAs === "expired" ? "expired" : "cancelled";
    const final: LineCounts = { ...counts, [remainingOutcome]: missing };
    const inOrder = lines.toSorted((one, other) => one.number - other.number);
    const lost: number[] = [];
    const page = async (after: number, limit: number): Promise<readonly AnsweredLine[]> =>
      await Promise.all(
        linesAfter(inOrder, after, limit).map(async ({ number, customId }): Promise<AnsweredLine> => {
          const outcome = answered.get(number);
          if (!outcome) return { number, customId, outcome: remainingOutcome };
          const answer = await answers.get(batch.id, number);
          if (answer) return { number, customId, outcome, answer };
          lost.push(number);
          throw new ServiceError("internal_error", `The answer to line ${number} of ${batch.id} is gone.`);
        }),
      );
    const newFileId = (): string => newOutputId(batch.id);
    const writeOptions = { store, answers: page, folder, format, newFileId, now };
    const written = await writeOutput({ ...batch, counts: final }, writeOptions).catch(
      async (error: unknown) => {
        if (lost.length === 0) throw error;
        await answers.discard(batch.id, lost);
      },
    );
    if (!written) return undefined;
    const { output, errors } = written;
    const files = [output, errors].filter((file) => file !== undefined);
    const change = { status: endsAs, total: lines.length, outputFile: output?.id, errorFile: errors?.id };
    try {
      return await store.finish(batch.id, { ...change, counts: final, usage }, files);
    } catch (error) {
      // The batch may have been ended although the acknowledgment was lost; unused files are swept later.
      if (!isUnreachable(error)) await removeUnrecorded(files, this.#options);
      throw error;
    }
  }

  /** Reads the input; a missing file is a problem. */
  async #read(batch: SharedBatch): Promise<ReadLines> {
    const { folder, formats } = this.#options;
    // After validation, the limits of the machine that validated the input apply.
    const limits = batch.total > 0 ? { maxLines: batch.total, maxLineBytes: Infinity } : this.#options.limits;
    const lines: PendingLine[] = [];
    const ids = new Set<string>();
    const addLines = async (added: readonly PendingLine[]): Promise<readonly PendingLine[]> => {
      const { fresh = [], known = [] } = Object.groupBy(added, ({ customId }) =>
        ids.size < ids.add(customId).size ? "fresh" : "known",
      );
      lines.push(...fresh);
      return known;
    };
    const format = formatOf(formats, batch);
    const input = folder.read(batch.inputFile);
    const { total, problems } = await readInput(batch, input, { addLines, ...limits, format }).catch(
      inputMissing,
    );
    return { total, problems, lines };
  }

  /** Groups lines by resolved model; lines of unknown models form one group. Undefined if a model is not known yet. */
  async #groupByModel(
    lines: readonly PendingLine[],
  ): Promise<readonly { group: LineGroup; lines: readonly PendingLine[] }[] | undefined> {
    const known: { group: LineGroup; lines: readonly PendingLine[] }[] = [];
    const unknown: PendingLine[] = [];
    for (const [name, groupLines] of Map.groupBy(lines, ({ model }) => model)) {
      const model = await this.#options.models.resolve(name);
      if (model === "unsettled") return undefined;
      if (model) known.push({ group: { name, model }, lines: groupLines.toSorted(bySortKey) });
      else unknown.push(...groupLines);
    }
    return unknown.length > 0 ? [...known, { group: { name: "" }, lines: unknown }] : known;
  }
}

/** Returns a missing input file as the problem of its batch. */
function inputMissing(error: unknown): Omit<ReadLines, "lines"> {
  const { code, message } = ServiceError.from(error);
  if (code !== INPUT_MISSING) throw error;
  return { total: 0, problems: [{ code, message, param: "input_file_id", line: null }] };
}

function isInputMissing({ code }: InputProblem): boolean {
  return code === INPUT_MISSING;
}

/** Copies the current counts, so that later answers do not get into the output. */
async function snapshot(answers: AnswerStore, batch: string): ReturnType<AnswerStore["tally"]> {
  const { answered, counts, usage } = await answers.tally(batch);
  return { answered: new Map(answered), counts: { ...counts }, usage };
}

function linesAfter(lines: readonly PendingLine[], after: number, limit: number): readonly PendingLine[] {
  const start = lines.findIndex(({ number }) => number > after);
  return start < 0 ? [] : lines.slice(start, start + limit);
}

function bySortKey(one: PendingLine, other: PendingLine): number {
  return one.sortKey === other.sortKey ? one.number - other.number : one.sortKey < other.sortKey ? -1 : 1;
}
