import {
  JetStreamApiError,
  JetStreamError,
  type JetStreamManager,
  jetstreamManager,
} from "@nats-io/jetstream";
import { errors, type Msg, type NatsConnection } from "@nats-io/transport-node";
import { mapInGroups, pause } from "../../async/promises.ts";
import { reasonOf, ServiceError, toError } from "../../errors/service-error.ts";

const RETRY_AFTER_SECS = 1;

/** Error codes of JetStream. */
export const WRONG_LAST_SEQUENCE = 10_071;
export const NO_STREAM = 10_059;
export const NO_CONSUMER = 10_014;
/** A message with the same id is still being stored. */
export const IN_PROCESS = 10_158;
/** A stream of this name exists with another configuration. */
export const NAME_IN_USE = 10_058;
/** Several replicas were requested from a server without a cluster. */
export const NOT_CLUSTERED = 10_074;
const STORAGE_FULL: ReadonlySet<number> = new Set([10_023, 10_047, 10_054, 10_077]);

/**
 * Thrown if the server has no JetStream for this account, so retrying does not help. The message follows "the NATS
 * server".
 */
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
 * Opens JetStream, with requests that are resent until they are answered.
 * @throws NoJetStream, and errors of NATS
 */
export async function openJetStream(nats: NatsConnection, timeoutMs: number): Promise<JetStreamManager> {
  try {
    return await jetstreamManager(withResends(nats), { timeout: timeoutMs });
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

/** Returns true if the stream is missing. For a published message the server reports only that nobody responds. */
export function isStreamMissing(error: unknown): boolean {
  return codeOf(error) === NO_STREAM || isNotEnabled(error);
}

/** Returns why JetStream cannot be used and what to do, as a part of a sentence. */
export function unreachableReason(
  error: unknown,
  { servers, problem }: { readonly servers: string; readonly problem: string | undefined },
): string {
  if (error instanceof NoJetStream) return `the fleet's NATS server at ${servers} ${error.message}`;
  if (codeOf(error) !== undefined)
    return `JetStream of the fleet's NATS server at ${servers} reports an error (${reasonOf(error)}): try again later`;
  let why = error === undefined ? problem : reasonOf(error);
  if (isNotEnabled(error)) why = "nobody takes messages for its stream";
  return `JetStream of the fleet's NATS server at ${servers} does not answer${why === undefined ? "" : ` (${why})`}: try again when it is back`;
}

/** Returns true if the error means that the server is unreachable. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof ServiceError && error.code === "fleet_unreachable";
}

/** Returns JetStream's code of an error; undefined for other errors. */
export function codeOf(error: unknown): number | undefined {
  return error instanceof JetStreamApiError ? error.code : undefined;
}

/** Converts an error or the absence of the server to a ServiceError. Returns other errors unchanged. */
export function describeError(
  error: unknown,
  server: { readonly servers: string; readonly problem: string | undefined },
): unknown {
  if (error instanceof ServiceError) return error;
  if (error !== undefined && !isNotEnabled(error) && !NATS_ERRORS.some((each) => error instanceof each))
    return error;
  if (STORAGE_FULL.has(codeOf(error) ?? 0)) {
    return new ServiceError(
      "insufficient_disk",
      `The fleet's NATS server at ${server.servers} has no room for more files and answers of batches: delete some, or give JetStream more.`,
      { cause: error },
    );
  }
  return new ServiceError(
    "fleet_unreachable",
    `The fleet's batches cannot be reached, since ${unreachableReason(error, server)}.`,
    { retryAfterSecs: RETRY_AFTER_SECS, cause: error },
  );
}

/** Recognizes by name an error class that the client does not export. */
function isNotEnabled(error: unknown): boolean {
  return error instanceof Error && error.name === "JetStreamNotEnabled";
}

/**
 * Times at which an unanswered request is resent, in milliseconds after the first time. A stream without a leader does
 * not answer: for a moment after its creation, and for ten seconds after its leader has died.
 */
const RESEND_AFTER_MS = [500, 1500, 3000, 5000, 7000, 9000, 11_000, 13_000, 15_000, 17_000];
const DEFAULT_TIMEOUT_MS = 1000;
/** Wait for the answer to a request that the server has received. */
const REPLY_WAIT_MS = 250;

/** A cluster has no leader: for a while after its start, and after its leader has died. */
export const NO_LEADER = 10_008;
/** Maximum bytes of an error reply. */
const MAX_ERROR_BYTES = 1024;
const decoder = new TextDecoder();

/** After this time a request may have been sent more than once. */
export const FIRST_RESEND_MS = RESEND_AFTER_MS[0] ?? 0;

/** Wraps a connection so that requests are resent until they are answered or time out. */
export function withResends(nats: NatsConnection): NatsConnection {
  const request: NatsConnection["request"] = async (subject, data, options) => {
    const { promise, resolve, reject } = Promise.withResolvers<Msg>();
    const settled = new AbortController();
    const startedAt = performance.now();
    const timeout = options?.timeout ?? DEFAULT_TIMEOUT_MS;
    const leftMs = (): number => startedAt + timeout - performance.now();
    let late: NodeJS.Timeout | undefined;
    const send = async (timeoutMs: number): Promise<void> => {
      const answer = await nats.request(subject, data, { ...options, timeout: timeoutMs });
      if (!isNoLeaderReply(answer)) resolve(answer);
      // Returned if no better answer arrives in time.
      else late ??= setTimeout(() => resolve(answer), leftMs());
    };
    const end = (error: unknown): void => {
      if (!late || !(error instanceof errors.TimeoutError)) reject(error);
    };
    const resend = async (): Promise<void> => {
      for (const ms of RESEND_AFTER_MS.filter((each) => each < timeout)) {
        await pause(Math.max(0, startedAt + ms - performance.now()), settled.signal);
        // On a slow connection a copy would only delay the first request, so flush() first waits until the server has
        // received it.
        await nats.flush();
        await pause(REPLY_WAIT_MS, settled.signal);
        if (leftMs() < 1) return;
        send(leftMs()).catch(end);
      }
    };
    send(timeout).catch(end);
    // Ends with the request or with the connection.
    resend().catch(() => undefined);
    try {
      return await promise;
    } finally {
      settled.abort();
      clearTimeout(late);
    }
  };
  return new Proxy(nats, {
    get: (target, key): unknown => (key === "request" ? request : Reflect.get(target, key, target)),
  });
}

/** Returns true if a reply says that the cluster has no leader. */
function isNoLeaderReply({ data }: Msg): boolean {
  return data.byteLength < MAX_ERROR_BYTES && decoder.decode(data).includes(`"err_code":${NO_LEADER},`);
}

/** Returns true if a version of the NATS server is at least the given one. */
export function isAtLeast(version: string, least: readonly [number, number, number]): boolean {
  const parts = version.split(/[.-]/, least.length).map(Number);
  for (const [at, required] of least.entries()) {
    const part = parts[at] ?? 0;
    if (part !== required) return part > required;
  }
  return true;
}

/**
 * First version with safe purges. After a crash, older servers in a cluster apply the purge of some subjects to the
 * whole stream (nats-server issue 4196). Debian 12 has such a version.
 */
const SAFE_PURGE_VERSION = [2, 9, 18] as const;
/** Subjects deleted in parallel where messages must be deleted one by one. */
const PARALLEL_SUBJECTS = 16;

/**
 * Removes the messages of a subject, which may have wildcards.
 * @param before removes only messages with lower sequence numbers
 */
export async function removeMessages(
  { streams }: Pick<JetStreamManager, "streams">,
  info: NatsConnection["info"],
  stream: string,
  filter: string,
  before?: number,
): Promise<void> {
  if (info?.cluster === undefined || isAtLeast(info.version, SAFE_PURGE_VERSION)) {
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
      // Another machine may have deleted it.
      const left = await streams.getMessage(stream, { last_by_subj: subject });
      if (left?.seq === last.seq) throw failure;
    }
  };
  await mapInGroups(subjects, PARALLEL_SUBJECTS, removeAll);
}
