import type { Logger } from "pino";
import {
  type AnsweredLine,
  type BatchFormat,
  type FinalStatus,
  formatOf,
  type InputProblem,
  type LineCounts,
  UNFINISHED,
  type WaitingLine,
} from "../../batches/batch.ts";
import type { FileContents } from "../../batches/batch-store.ts";
import { readInput } from "../../batches/input-file.ts";
import { forget, writeOutput } from "../../batches/batch-runner.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { Answers } from "./answer-store.ts";
import type { BatchModels } from "./batch-models.ts";
import { type LineGroup, newNonce, newOutputId, type SharedBatch } from "./batch-record.ts";
import { isUnreachable } from "../jetstream/jetstream-errors.ts";
import type { LineRuns } from "./line-runs.ts";
import type { SharedStore } from "./shared-store.ts";

const INPUT_GONE = "file_not_found";

export interface LeadOptions {
  readonly store: SharedStore;
  readonly folder: FileContents;
  readonly answers: Answers;
  readonly runs: LineRuns;
  readonly models: BatchModels;
  readonly formats: Readonly<Record<string, BatchFormat>>;
  readonly limits: { readonly maxLines: number; readonly maxLineBytes: number };
  readonly logger: Pick<Logger, "warn">;
  /** Unix milliseconds. */
  readonly now: () => number;
}

interface ReadLines {
  readonly total: number;
  readonly problems: SharedBatch["problems"];
  readonly lines: readonly WaitingLine[];
}

/** Who leads a batch does its steps one after the other; each can be done again after any interruption, by anyone. */
export class BatchLeader {
  readonly #options: LeadOptions;

  constructor(options: LeadOptions) {
    this.#options = options;
  }

  /** Checks the lines and queues them; the batch as it is now, or undefined when that is not known yet. */
  async validate(batch: SharedBatch): Promise<SharedBatch | undefined> {
    const { store, runs } = this.#options;
    const { total, problems, lines } = await this.#read(batch).catch(inputGone);
    if (problems.length > 0)
      return await store.change(batch.id, ["validating"], { status: "failed", problems });
    const byGroup = await this.#grouped(lines);
    if (!byGroup) return undefined;
    const { id } = batch;
    const queued = { id, queue: newNonce() };
    const earlier = await runs.queues(id);
    // From now on no earlier leader can have the batch run its queue, even one that does not know that it has lost its lease.
    if (!(await store.change(id, ["validating"], { queue: queued.queue }))) return undefined;
    for (const [queue, numbers] of earlier) await runs.remove({ id, queue }, numbers);
    for (const [index, { lines: those }] of byGroup.entries()) await runs.add(queued, index, those);
    const groups = byGroup.map(({ group }) => group);
    const begun = await store.update(id, ({ status, queue }) =>
      status === "validating" && queue === queued.queue
        ? { status: "in_progress", total, groups }
        : undefined,
    );
    if (begun) return begun;
    // It may have been this one whose acknowledgment was lost.
    const found = await store.recorded(id);
    if (found?.queue === queued.queue && found.status === "in_progress") return found;
    await runs.remove(queued, groups.keys());
    return undefined;
  }

  /** Whether all lines are answered. */
  async isAnswered({ id, total }: SharedBatch): Promise<boolean> {
    return (await this.#options.answers.tally(id)).answered.size >= total;
  }

  /**
   * Queues lines again that are neither answered nor queued: a server without power may forget what it had not yet saved.
   * @param isLeading whether this machine still leads the batch after it has read the lines
   */
  async requeue(batch: SharedBatch, isLeading: () => boolean): Promise<void> {
    const { store, answers, runs, logger } = this.#options;
    if (await runs.hasAny(batch)) return;
    const { answered } = await answers.tally(batch.id);
    if (answered.size >= batch.total) return;
    const { lines, problems } = await this.#read(batch).catch(inputGone);
    if (problems.some(isGone)) {
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
      const isKnown = (line: WaitingLine): boolean =>
        batch.groups.some((each) => each.model && each.name === line.model);
      const those = lost.filter((line) => (model ? line.model === name : !isKnown(line)));
      if (those.length > 0) await runs.add(batch, group, those.toSorted(byBeginning));
    }
  }

  /** Writes the output of a batch and ends it; undefined when somebody else has, or when it has to go on. */
  async finish(batch: SharedBatch): Promise<SharedBatch | undefined> {
    const { store, folder, answers, formats, now } = this.#options;
    const format = formatOf(formats, batch);
    const endsAs: FinalStatus = batch.endsAs ?? (batch.status === "cancelling" ? "cancelled" : "completed");
    const { lines, problems } = await this.#read(batch).catch(inputGone);
    const gone = problems.filter(isGone);
    if (gone.length > 0)
      return await store.change(batch.id, UNFINISHED, { status: "failed", problems: gone });
    const { answered, counts, usage } = await snapshot(answers, batch.id);
    const numbers = new Set(lines.map(({ number }) => number));
    const strange = [...answered.keys()].filter((number) => !numbers.has(number));
    if (strange.length > 0) {
      await answers.discard(batch.id, strange);
      return undefined;
    }
    const missing = lines.length - answered.size;
    if (endsAs === "completed" && missing > 0) {
      await store.change(batch.id, ["finalizing"], { status: "in_progress" });
      return undefined;
    }
    const rest = endsAs === "expired" ? "expired" : "cancelled";
    const final: LineCounts = { ...counts, [rest]: missing };
    const inOrder = lines.toSorted((one, other) => one.number - other.number);
    const lost: number[] = [];
    const page = async (_id: string, after: number, limit: number): Promise<readonly AnsweredLine[]> =>
      await Promise.all(
        following(inOrder, after, limit).map(async ({ number, customId }): Promise<AnsweredLine> => {
          const outcome = answered.get(number);
          if (!outcome) return { number, customId, outcome: rest };
          const answer = await answers.get(batch.id, number);
          if (answer) return { number, customId, outcome, answer };
          lost.push(number);
          throw new ServiceError("internal_error", `The answer to line ${number} of ${batch.id} is gone.`);
        }),
      );
    const source = {
      answers: page,
      file: async (id: string) => await store.file(id, undefined),
    };
    const counted = { ...batch, counts: final };
    const newFileId = (): string => newOutputId(batch.id);
    const written = await writeOutput(counted, { store: source, folder, format, newFileId, now }).catch(
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
      // Without an answer it may have ended all the same: what is left then is swept later.
      if (!isUnreachable(error)) await forget(files, { store: source, folder });
      throw error;
    }
  }

  async #read(batch: SharedBatch): Promise<ReadLines> {
    const { folder, formats } = this.#options;
    // Once it has been checked, the limits of the machine that did it hold.
    const limits = batch.total > 0 ? { maxLines: batch.total, maxLineBytes: Infinity } : this.#options.limits;
    const lines: WaitingLine[] = [];
    const ids = new Set<string>();
    const isNew = ({ customId }: WaitingLine): boolean => ids.size < ids.add(customId).size;
    const addLines = async (added: readonly WaitingLine[]): Promise<readonly WaitingLine[]> => {
      const fresh = added.filter(isNew);
      lines.push(...fresh);
      return added.filter((line) => !fresh.includes(line));
    };
    const store = {
      addLines: async (_id: string, added: readonly WaitingLine[]) => await addLines(added),
      dropLines: async () => undefined,
    };
    const format = formatOf(formats, batch);
    const { total, problems } = await readInput(batch, folder.read(batch.inputFile), {
      store,
      ...limits,
      format,
    });
    return { total, problems, lines };
  }

  /** Lines by what they mean by their model; all whose model nobody has are together. Undefined: it is not known yet. */
  async #grouped(
    lines: readonly WaitingLine[],
  ): Promise<readonly { group: LineGroup; lines: readonly WaitingLine[] }[] | undefined> {
    const known: { group: LineGroup; lines: readonly WaitingLine[] }[] = [];
    const unknown: WaitingLine[] = [];
    for (const [name, those] of Map.groupBy(lines, ({ model }) => model)) {
      const model = await this.#options.models.meaning(name);
      if (model === "unsettled") return undefined;
      if (model) known.push({ group: { name, model }, lines: those.toSorted(byBeginning) });
      else unknown.push(...those);
    }
    return unknown.length > 0 ? [...known, { group: { name: "" }, lines: unknown }] : known;
  }
}

/** An input that is no longer there is what is wrong with its batch. */
function inputGone(error: unknown): ReadLines {
  const { code, message } = ServiceError.from(error);
  if (code !== INPUT_GONE) throw error;
  return { total: 0, problems: [{ code, message, param: "input_file_id", line: null }], lines: [] };
}

function isGone({ code }: InputProblem): boolean {
  return code === INPUT_GONE;
}

/** What is answered by now: what comes later does not belong to the output. */
async function snapshot(answers: Answers, batch: string): ReturnType<Answers["tally"]> {
  const { answered, counts, usage } = await answers.tally(batch);
  return { answered: new Map(answered), counts: { ...counts }, usage };
}

function following(lines: readonly WaitingLine[], after: number, limit: number): readonly WaitingLine[] {
  const start = lines.findIndex(({ number }) => number > after);
  return start < 0 ? [] : lines.slice(start, start + limit);
}

function byBeginning(one: WaitingLine, other: WaitingLine): number {
  return one.order === other.order ? one.number - other.number : one.order < other.order ? -1 : 1;
}
