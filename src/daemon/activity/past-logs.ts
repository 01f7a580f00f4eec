import { z } from "zod";
import { LOG_LEVELS, type LogLevel, type PastLog } from "../../dialects/management/activity-schemas.ts";
import { BoundedRing } from "./bounded-ring.ts";

/** pino's number of the first level. The others follow in steps of as much. */
const LEVEL_STEP = 10;
const WARN = 40;

/** Enough to see what led to a problem; at 200 bytes a line, a fraction of the bytes. */
const USUAL = { maxCount: 500, maxBytes: 512 * 1024 };
/** Kept apart, so that much usual business does not push them out. Some have stacks. */
const PROBLEMS = { maxCount: 300, maxBytes: 512 * 1024 };
/** A stack has 2 KB. What is longer would leave no room for others. */
const MAX_LINE = 16 * 1024;
/** Of the message of a longer one. */
const MAX_MESSAGE = 2000;
/** A character of a string takes up to two bytes, and an entry some of its own. */
const bytesOf = (line: string): number => 100 + 2 * line.length;

const lineSchema = z.looseObject({ level: z.number(), time: z.number(), msg: z.string().default("") });

/** The last lines of the log, as the log has written them. */
export class PastLogs {
  readonly #usual = new BoundedRing<string>(USUAL);
  readonly #problems = new BoundedRing<string>(PROBLEMS);

  /** Lines are only parsed when somebody asks for them. */
  add(number: number, line: string): void {
    const kept = line.length > MAX_LINE ? shortened(line) : line;
    const ring = levelNumber(kept) < WARN ? this.#usual : this.#problems;
    ring.add(number, kept, bytesOf(kept));
  }

  /** Those of at least a level that are newer than a number, in order. */
  after(number: number, least: LogLevel): PastLog[] {
    const from = (LOG_LEVELS.indexOf(least) + 1) * LEVEL_STEP;
    const rings = from < WARN ? [this.#usual, this.#problems] : [this.#problems];
    return rings
      .flatMap((ring) => ring.after(number))
      .filter(({ entry }) => levelNumber(entry) >= from)
      .toSorted((one, other) => one.number - other.number)
      .map((each) => readLine(each.number, each.entry));
  }
}

/** pino begins each line with it. */
function levelNumber(line: string): number {
  return Number(/^\{"level":(\d+)/.exec(line)?.[1] ?? WARN);
}

function readLine(number: number, line: string): PastLog {
  const { level, time, msg, ...fields } = lineSchema.parse(JSON.parse(line));
  const index = Math.min(Math.max(Math.round(level / LEVEL_STEP), 1), LOG_LEVELS.length) - 1;
  return {
    number,
    time: new Date(time).toISOString(),
    level: LOG_LEVELS[index] ?? "info",
    message: msg,
    fields,
  };
}

function shortened(line: string): string {
  const { level, time, msg } = lineSchema.parse(JSON.parse(line));
  return JSON.stringify({ level, time, msg: `${msg.slice(0, MAX_MESSAGE)} …` });
}
