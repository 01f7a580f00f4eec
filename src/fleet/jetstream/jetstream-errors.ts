import {
  JetStreamApiError,
  JetStreamError,
  type JetStreamManager,
  jetstreamManager,
} from "@nats-io/jetstream";
import { errors, type Msg, type NatsConnection } from "@nats-io/transport-node";
import { pause } from "../../async/pause.ts";
import { reasonOf } from "../../errors/reason-of.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { toError } from "../../errors/to-error.ts";

const RETRY_AFTER_SECS = 1;

/** JetStream's own numbers of errors. */
export const WRONG_LAST_SEQUENCE = 10_071;
export const NO_STREAM = 10_059;
export const NO_CONSUMER = 10_014;
/** Another message with the same id is not stored yet. */
export const IN_PROCESS = 10_158;
/** There is a stream of this name, of which another configuration was asked for. */
export const NAME_IN_USE = 10_058;
/** More than one copy was asked for where there can be only one. */
export const NOT_CLUSTERED = 10_074;
const NO_ROOM: ReadonlySet<number> = new Set([10_023, 10_047, 10_054, 10_077]);

/** The server is there, and has no JetStream for us: waiting does not help. Its message goes on after "the NATS server". */
export class NoJetStream extends Error {
  override readonly name = "NoJetStream";
}

const NATS_ERRORS = [
  JetStreamError,
  JetStreamApiError,
  NoJetStream,
  errors.ClosedConnectionError,
  errors.ConnectionError,
  errors.DrainingConnectionError,
  errors.NoRespondersError,
  errors.ProtocolError,
  errors.RequestError,
  errors.TimeoutError,
];

/**
 * JetStream, whose requests are sent again while they have no answer.
 * @throws NoJetStream, and the errors of NATS
 */
export async function openJetStream(nats: NatsConnection, timeoutMs: number): Promise<JetStreamManager> {
  try {
    return await jetstreamManager(askingAgain(nats), { timeout: timeoutMs });
  } catch (error) {
    if (!isNotEnabled(error)) throw error;
    const isOfAccount = toError(error).cause instanceof JetStreamApiError;
    throw new NoJetStream(
      isOfAccount
        ? "has no JetStream for this account: allow it there"
        : "runs without JetStream: start it with -js",
      { cause: error },
    );
  }
}

/** Whether the stream is not there: the server's files may have been removed. Of a message, the server says only that nobody takes it. */
export function isWithoutStream(error: unknown): boolean {
  return codeOf(error) === NO_STREAM || isNotEnabled(error);
}

/** Why JetStream cannot be used and what to do, as a part of a sentence. */
export function unreachableReason(
  error: unknown,
  { where, problem }: { readonly where: string; readonly problem: string | undefined },
): string {
  if (error instanceof NoJetStream) return `the fleet's NATS server at ${where} ${error.message}`;
  if (codeOf(error) !== undefined)
    return `JetStream of the fleet's NATS server at ${where} reports an error (${reasonOf(error)}): try again later`;
  let why = error === undefined ? problem : reasonOf(error);
  if (isNotEnabled(error)) why = "nobody takes messages for its stream";
  return `JetStream of the fleet's NATS server at ${where} does not answer${why === undefined ? "" : ` (${why})`}: try again when it is back`;
}

/** Whether something has failed because the server is away. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof ServiceError && error.code === "fleet_unreachable";
}

/** JetStream's number of an error; undefined for other errors. */
export function codeOf(error: unknown): number | undefined {
  return error instanceof JetStreamApiError ? error.code : undefined;
}

/** What to tell of an error of the server's, or of its absence. Errors of ours stay as they are. */
export function explained(
  error: unknown,
  server: { readonly where: string; readonly problem: string | undefined },
): unknown {
  if (error instanceof ServiceError) return error;
  if (error !== undefined && !isNotEnabled(error) && !NATS_ERRORS.some((each) => error instanceof each))
    return error;
  if (NO_ROOM.has(codeOf(error) ?? 0)) {
    return new ServiceError(
      "insufficient_disk",
      `The fleet's NATS server at ${server.where} has no room for more files and answers of batches: delete some, or give JetStream more.`,
      { cause: error },
    );
  }
  return new ServiceError(
    "fleet_unreachable",
    `The fleet's batches cannot be reached, since ${unreachableReason(error, server)}.`,
    { retryAfterSecs: RETRY_AFTER_SECS, cause: error },
  );
}

/** An error that the client does not export. */
function isNotEnabled(error: unknown): boolean {
  return error instanceof Error && error.name === "JetStreamNotEnabled";
}

/**
 * When a request that has no answer is sent again, in milliseconds after the first time. A server says nothing to what comes
 * while a stream has no leader: for a moment after it has been made, for ten seconds after its leader has died.
 */
const AGAIN_MS = [500, 1500, 3000, 5000, 7000, 9000, 11_000, 13_000, 15_000, 17_000];
const DEFAULT_TIMEOUT_MS = 1000;
/** For the answer to what the server has read. */
const ANSWER_MS = 250;

/** A cluster has no leader: for a while after its start, and after its leader has died. */
export const NO_LEADER = 10_008;
/** Bytes. */
const LONGEST_ERROR = 1024;
const decoder = new TextDecoder();

/** From then on, a request may have been sent more than once. */
export const ASKED_ONCE_MS = AGAIN_MS[0] ?? 0;

/** The connection, with requests that are sent again until one of them is answered, within the time that each has. */
export function askingAgain(nats: NatsConnection): NatsConnection {
  const request: NatsConnection["request"] = async (subject, data, options) => {
    const { promise, resolve, reject } = Promise.withResolvers<Msg>();
    const over = new AbortController();
    const startedAt = performance.now();
    const timeout = options?.timeout ?? DEFAULT_TIMEOUT_MS;
    const leftMs = (): number => startedAt + timeout - performance.now();
    let late: NodeJS.Timeout | undefined;
    const ask = async (timeoutMs: number): Promise<void> => {
      const answer = await nats.request(subject, data, { ...options, timeout: timeoutMs });
      if (!saysNoLeader(answer)) resolve(answer);
      // Told if nothing better comes in time.
      else late ??= setTimeout(() => resolve(answer), leftMs());
    };
    const end = (error: unknown): void => {
      if (!late || !(error instanceof errors.TimeoutError)) reject(error);
    };
    const askAgain = async (): Promise<void> => {
      for (const ms of AGAIN_MS.filter((each) => each < timeout)) {
        await pause(Math.max(0, startedAt + ms - performance.now()), over.signal);
        // On a slow line, a second copy would only delay the first, which is still on its way until the server answers this.
        await nats.flush();
        await pause(ANSWER_MS, over.signal);
        if (leftMs() < 1) return;
        ask(leftMs()).catch(end);
      }
    };
    ask(timeout).catch(end);
    // It ends with the request, or with the connection, as the request does.
    askAgain().catch(() => undefined);
    try {
      return await promise;
    } finally {
      over.abort();
      clearTimeout(late);
    }
  };
  return new Proxy(nats, {
    get: (target, key): unknown => (key === "request" ? request : Reflect.get(target, key, target)),
  });
}

/** Whether a server of a cluster answers that nobody leads it now. */
function saysNoLeader({ data }: Msg): boolean {
  return data.byteLength < LONGEST_ERROR && decoder.decode(data).includes(`"err_code":${NO_LEADER},`);
}

/** Whether a NATS server is of this version or a newer one. */
export function isAtLeast(version: string, least: readonly [number, number, number]): boolean {
  const parts = version.split(/[.-]/, least.length).map(Number);
  for (const [at, wanted] of least.entries()) {
    const part = parts[at] ?? 0;
    if (part !== wanted) return part > wanted;
  }
  return true;
}

/**
 * A server of a cluster that is older than this, and is started again after a crash, takes what it has been told to remove of
 * some subjects for all that it has (nats-server issue 4196). Debian 12 has such a one.
 */
const SAFE = [2, 9, 18] as const;
/** Messages at once, where they are removed one by one. */
const AT_ONCE = 16;

/**
 * Removes the messages of a subject, which may have wildcards.
 * @param before those with lower numbers alone
 */
export async function removeMessages(
  { streams }: Pick<JetStreamManager, "streams">,
  info: NatsConnection["info"],
  stream: string,
  filter: string,
  before?: number,
): Promise<void> {
  if (info?.cluster === undefined || isAtLeast(info.version, SAFE)) {
    await streams.purge(stream, { filter, ...(before !== undefined && { seq: before }) });
    return;
  }
  const { state } = await streams.info(stream, { subjects_filter: filter });
  const subjects = Object.keys(state.subjects ?? {});
  const removeAll = async (subject: string): Promise<void> => {
    for (;;) {
      const last = await streams.getMessage(stream, { last_by_subj: subject });
      if (!last || (before !== undefined && last.seq >= before)) return;
      const failure = await streams.deleteMessage(stream, last.seq, false).catch(toError);
      if (!(failure instanceof Error)) continue;
      // Another machine may have done it.
      const left = await streams.getMessage(stream, { last_by_subj: subject });
      if (left?.seq === last.seq) throw failure;
    }
  };
  for (let at = 0; at < subjects.length; at += AT_ONCE)
    await Promise.all(subjects.slice(at, at + AT_ONCE).map(removeAll));
}
