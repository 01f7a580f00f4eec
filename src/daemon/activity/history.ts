import { z } from "zod";
import {
  LOG_LEVELS,
  type LogLevel,
  type PastLog,
  type PastRequest,
} from "../../api/management/activity-schemas.ts";
import type { RequestEnd, RequestHead } from "../../http/middleware/request-log.ts";
import type { WorkFigures } from "../../inference/request-accounting.ts";

/** An hour of a busy machine; those with a model are kept apart, so that pages and scrapers do not push them out. */
const WORK = { maxCount: 300, maxBytes: 512 * 1024 };
const CHANGES = { maxCount: 200, maxBytes: 256 * 1024 };
/** A page that looks every two seconds fills this in minutes, and no more than this. */
const LOOKS = { maxCount: 100, maxBytes: 128 * 1024 };
/** The longest of our own have 60 characters; somebody else's may have thousands. */
const MAX_PATH = 200;
/** Names of models are shorter. */
const MAX_MODEL = 200;
/** The first status of an error. */
const HTTP_ERROR = 400;
/** The fixed fields of a record. */
const RECORD_BYTES = 500;

/** A request under way, or one that is over; what is known of it is added up here, in a record of a fixed size. */
export class FollowedRequest {
  readonly head: Pick<RequestHead, "id" | "method" | "path">;
  readonly time = new Date();
  #work: WorkFigures | undefined;

  constructor({ id, method, path }: RequestHead) {
    this.head = { id, method, path: path.slice(0, MAX_PATH) };
  }

  /** Whether a model had to do with it. */
  get hasWork(): boolean {
    return this.#work !== undefined;
  }

  get work(): WorkFigures {
    return this.#work ?? {};
  }

  /** Of several pieces of work, tokens are added up; the first one's prompt and first token are the request's. */
  note(figures: WorkFigures): void {
    const before = this.#work ?? {};
    const { model, completionTokens } = figures;
    this.#work = {
      ...figures,
      ...before,
      ...(before.model === undefined && model !== undefined && { model: model.slice(0, MAX_MODEL) }),
      ...(completionTokens !== undefined && {
        completionTokens: (before.completionTokens ?? 0) + completionTokens,
      }),
    };
  }
}

/** What the log's line of a request says of its work; empty where no model had to do with it. */
export function loggedFigures({ work }: FollowedRequest): Readonly<Record<string, unknown>> {
  return {
    ...(work.model !== undefined && { model: work.model }),
    ...(work.promptTokens !== undefined && { prompt_tokens: work.promptTokens }),
    ...(work.cachedTokens !== undefined && { cached_tokens: work.cachedTokens }),
    ...(work.completionTokens !== undefined && { completion_tokens: work.completionTokens }),
    ...(work.firstTokenMs !== undefined && { first_token_ms: Math.round(work.firstTokenMs) }),
    ...(work.failure !== undefined && { error: work.failure }),
  };
}

interface Ended {
  readonly request: FollowedRequest;
  readonly end: RequestEnd;
}

/** The last requests. */
export class PastRequests {
  readonly #work = new BoundedRing<Ended>(WORK);
  /** Loads, downloads and whatever failed. */
  readonly #changes = new BoundedRing<Ended>(CHANGES);
  readonly #looks = new BoundedRing<Ended>(LOOKS);

  add(number: number, request: FollowedRequest, end: RequestEnd): void {
    const { id, method, path } = request.head;
    const isLook = (method === "GET" || method === "HEAD") && end.status < HTTP_ERROR;
    const ring = request.hasWork ? this.#work : isLook ? this.#looks : this.#changes;
    const bytes = RECORD_BYTES + 2 * (id.length + path.length + (request.work.model?.length ?? 0));
    ring.add(number, { request, end }, bytes);
  }

  /** Those newer than a number, in order. */
  after(number: number): PastRequest[] {
    return [this.#work, this.#changes, this.#looks]
      .flatMap((ring) => ring.after(number))
      .toSorted((one, other) => one.number - other.number)
      .map((each) => describe(each.number, each.entry));
  }
}

function describe(number: number, { request, end }: Ended): PastRequest {
  const { head, time, work } = request;
  return {
    number,
    ...head,
    time: time.toISOString(),
    status: end.status,
    ms: end.ms,
    aborted: end.isAborted || (work.isAborted ?? false),
    // What the work has ended with, others may have made something else of.
    failure: end.errorCode ?? work.failure,
    model: work.model,
    prompt_tokens: work.promptTokens,
    cached_tokens: work.cachedTokens,
    completion_tokens: work.completionTokens,
    first_token_ms: rounded(work.firstTokenMs),
    tokens_per_second: work.tokensPerSecond,
  };
}

function rounded(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.round(value);
}

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

interface RingLimits {
  readonly maxCount: number;
  /** Of all entries together, as their owner weighs them. */
  readonly maxBytes: number;
}

interface Numbered<Entry> {
  readonly number: number;
  readonly entry: Entry;
}

/** Keeps the newest entries within two limits. Adding one takes the same short time however many there are. */
export class BoundedRing<Entry> {
  readonly #limits: RingLimits;
  /** By number; a map keeps the order in which they came. */
  readonly #entries = new Map<number, { readonly entry: Entry; readonly bytes: number }>();
  #bytes = 0;

  constructor(limits: RingLimits) {
    this.#limits = limits;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get count(): number {
    return this.#entries.size;
  }

  /** @param number greater than those before */
  add(number: number, entry: Entry, bytes: number): void {
    this.#entries.set(number, { entry, bytes });
    this.#bytes += bytes;
    for (const [oldest, { bytes: freed }] of this.#entries) {
      if (this.#entries.size <= this.#limits.maxCount && this.#bytes <= this.#limits.maxBytes) break;
      this.#entries.delete(oldest);
      this.#bytes -= freed;
    }
  }

  /** Those with a greater number, the oldest first. */
  after(number: number): Numbered<Entry>[] {
    return [...this.#entries].flatMap(([each, { entry }]) =>
      each > number ? [{ number: each, entry }] : [],
    );
  }
}
