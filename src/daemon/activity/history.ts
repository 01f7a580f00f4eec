import { z } from "zod";
import { LOG_LEVELS, type LogLevel, type PastLog, type PastRequest } from "../../api/wire/activity.ts";
import type { RequestEnd, RequestHead } from "../../http/middleware/request-log.ts";
import type { WorkStats } from "../../inference/request-accounting.ts";
import { withoutUndefined } from "../../json/json-values.ts";

/**
 * Limits of requests that used a model. They are stored separately, so that polls of pages and scrapers do not evict
 * them.
 */
const WORK_LIMITS = { maxCount: 300, maxBytes: 512 * 1024 };
const CHANGE_LIMITS = { maxCount: 200, maxBytes: 256 * 1024 };
/** Limits of successful reads, which pages repeat every two seconds. */
const READ_LIMITS = { maxCount: 100, maxBytes: 128 * 1024 };
/** Stored characters of a path; a client may send thousands. */
const MAX_PATH = 200;
/** Stored characters of a model's name. */
const MAX_MODEL = 200;
/** Lowest status of an error. */
const HTTP_ERROR = 400;
/** Bytes of a record's fixed fields. */
const RECORD_BYTES = 500;

/** Running or ended request, with the sums of its work in a record of a bounded size. */
export class FollowedRequest {
  readonly head: Pick<RequestHead, "id" | "method" | "path">;
  readonly time = new Date();
  #work: WorkStats | undefined;

  constructor({ id, method, path }: RequestHead) {
    this.head = { id, method, path: path.slice(0, MAX_PATH) };
  }

  /** True if the request used a model. */
  get hasWork(): boolean {
    return this.#work !== undefined;
  }

  get work(): WorkStats {
    return this.#work ?? {};
  }

  /** Adds figures of work. Completion tokens are summed; of the other figures the first ones stay. */
  note(figures: WorkStats): void {
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

/** Fields of the work in the log line of a request; empty if it used no model. */
export function loggedFigures({ work }: FollowedRequest): Readonly<Record<string, unknown>> {
  return withoutUndefined({
    model: work.model,
    prompt_tokens: work.promptTokens,
    cached_tokens: work.cachedTokens,
    completion_tokens: work.completionTokens,
    first_token_ms: rounded(work.firstTokenMs),
    error: work.failure,
  });
}

interface EndedEntry {
  readonly request: FollowedRequest;
  readonly end: RequestEnd;
}

/** Recent requests. */
export class PastRequests {
  readonly #work = new BoundedRing<EndedEntry>(WORK_LIMITS);
  /** Loads, downloads and failed requests. */
  readonly #changes = new BoundedRing<EndedEntry>(CHANGE_LIMITS);
  readonly #reads = new BoundedRing<EndedEntry>(READ_LIMITS);

  add(number: number, request: FollowedRequest, end: RequestEnd): void {
    const { id, method, path } = request.head;
    const isRead = (method === "GET" || method === "HEAD") && end.status < HTTP_ERROR;
    const ring = request.hasWork ? this.#work : isRead ? this.#reads : this.#changes;
    const bytes = RECORD_BYTES + 2 * (id.length + path.length + (request.work.model?.length ?? 0));
    ring.add(number, { request, end }, bytes);
  }

  /** Requests with a greater number, in order. */
  after(number: number): PastRequest[] {
    return entriesAfter([this.#work, this.#changes, this.#reads], number).map(toPastRequest);
  }
}

function toPastRequest({ number, entry: { request, end } }: Numbered<EndedEntry>): PastRequest {
  const { head, time, work } = request;
  return {
    number,
    ...head,
    time: time.toISOString(),
    status: end.status,
    ms: end.ms,
    aborted: end.isAborted || (work.isAborted ?? false),
    // The error of the response takes precedence over that of the work.
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

/** Number of pino's first level, and the step to the next one. */
const LEVEL_STEP = 10;
const WARN = 40;

/** Limits of lines below warn. */
const ROUTINE_LIMITS = { maxCount: 500, maxBytes: 512 * 1024 };
/** Limits of warnings and errors, stored separately so that other lines do not evict them. */
const PROBLEM_LIMITS = { maxCount: 300, maxBytes: 512 * 1024 };
/** Stored characters of a line. A stack has 2 KB. */
const MAX_LINE = 16 * 1024;
/** Stored characters of the message of a longer line. */
const MAX_MESSAGE = 2000;
/** Memory of an entry: up to two bytes per character, and the entry itself. */
const lineBytes = (line: string): number => 100 + 2 * line.length;

const lineSchema = z.looseObject({ level: z.number(), time: z.number(), msg: z.string().default("") });

/** Recent lines of the log, in JSON. */
export class PastLogs {
  readonly #routine = new BoundedRing<string>(ROUTINE_LIMITS);
  readonly #problems = new BoundedRing<string>(PROBLEM_LIMITS);

  /** Stores a line. Parsing is deferred until it is read. */
  add(number: number, line: string): void {
    const stored = line.length > MAX_LINE ? shortened(line) : line;
    const ring = levelNumber(stored) < WARN ? this.#routine : this.#problems;
    ring.add(number, stored, lineBytes(stored));
  }

  /** Lines of at least a level with a greater number, in order. */
  after(number: number, minimum: LogLevel): PastLog[] {
    const from = (LOG_LEVELS.indexOf(minimum) + 1) * LEVEL_STEP;
    const rings = from < WARN ? [this.#routine, this.#problems] : [this.#problems];
    return entriesAfter(rings, number)
      .filter(({ entry }) => levelNumber(entry) >= from)
      .map(readLine);
  }
}

/** Level of a line, which pino writes first. */
function levelNumber(line: string): number {
  return Number(/^\{"level":(\d+)/.exec(line)?.[1] ?? WARN);
}

function readLine({ number, entry }: Numbered<string>): PastLog {
  const { level, time, msg, ...fields } = lineSchema.parse(JSON.parse(entry));
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
  /** Bytes of all entries together, as given to {@link BoundedRing.add}. */
  readonly maxBytes: number;
}

interface Numbered<Entry> {
  readonly number: number;
  readonly entry: Entry;
}

/** Stores the newest entries within two limits. Adding takes amortized constant time. */
export class BoundedRing<Entry> {
  readonly #limits: RingLimits;
  /** Entries by number, in insertion order. */
  readonly #entries = new Map<number, { readonly entry: Entry; readonly bytes: number }>();
  #bytes = 0;

  constructor(limits: RingLimits) {
    this.#limits = limits;
  }

  /** Adds an entry and evicts the oldest ones. @param number greater than all before */
  add(number: number, entry: Entry, bytes: number): void {
    this.#entries.set(number, { entry, bytes });
    this.#bytes += bytes;
    for (const [oldest, { bytes: freed }] of this.#entries) {
      if (this.#entries.size <= this.#limits.maxCount && this.#bytes <= this.#limits.maxBytes) break;
      this.#entries.delete(oldest);
      this.#bytes -= freed;
    }
  }

  /** Entries with a greater number, the oldest first. */
  after(number: number): Numbered<Entry>[] {
    return [...this.#entries].flatMap(([each, { entry }]) =>
      each > number ? [{ number: each, entry }] : [],
    );
  }
}

/** Entries of several rings with a greater number, in order. */
function entriesAfter<Entry>(rings: readonly BoundedRing<Entry>[], number: number): Numbered<Entry>[] {
  return rings.flatMap((ring) => ring.after(number)).toSorted((one, other) => one.number - other.number);
}
