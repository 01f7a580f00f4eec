import {
  JetStreamApiError,
  JetStreamError,
  type JetStreamManager,
  jetstreamManager,
} from "@nats-io/jetstream";
import { errors, type NatsConnection } from "@nats-io/transport-node";
import { reasonOf } from "../../errors/reason-of.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { toError } from "../../errors/to-error.ts";
import { askingAgain } from "./ask-again.ts";

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
export function whyAway(
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
export function isAway(error: unknown): boolean {
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
    `The fleet's batches cannot be reached, since ${whyAway(error, server)}.`,
    { retryAfterSecs: RETRY_AFTER_SECS, cause: error },
  );
}

/** An error that the client does not export. */
function isNotEnabled(error: unknown): boolean {
  return error instanceof Error && error.name === "JetStreamNotEnabled";
}
