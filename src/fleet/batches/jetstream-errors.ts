import { JetStreamApiError, JetStreamError } from "@nats-io/jetstream";
import { errors } from "@nats-io/transport-node";
import { ServiceError } from "../../errors/service-error.ts";
import { toError } from "../../errors/to-error.ts";

const RETRY_AFTER_SECS = 1;

/** JetStream's own numbers of errors. */
export const WRONG_LAST_SEQUENCE = 10_071;
export const NO_STREAM = 10_059;
/** A cluster that has just been started has no leader yet. */
export const NO_LEADER = 10_008;
const NO_ROOM: ReadonlySet<number> = new Set([10_023, 10_047, 10_054, 10_077]);
const NATS_ERRORS = [
  JetStreamError,
  JetStreamApiError,
  errors.ClosedConnectionError,
  errors.ConnectionError,
  errors.DrainingConnectionError,
  errors.NoRespondersError,
  errors.ProtocolError,
  errors.RequestError,
  errors.TimeoutError,
];

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
  { where, problem }: { readonly where: string; readonly problem: string | undefined },
): unknown {
  if (error instanceof ServiceError) return error;
  if (error !== undefined && !isNotEnabled(error) && !NATS_ERRORS.some((each) => error instanceof each))
    return error;
  if (NO_ROOM.has(codeOf(error) ?? 0)) {
    return new ServiceError(
      "insufficient_disk",
      `The fleet's NATS server at ${where} has no room for more files and answers of batches: delete some, or give JetStream more.`,
      { cause: error },
    );
  }
  const why = error === undefined ? problem : toError(error).message;
  return new ServiceError(
    "fleet_unreachable",
    `The fleet's batches cannot be reached, since JetStream of the NATS server at ${where} does not answer${why === undefined ? "" : ` (${why})`}: try again when it is back.`,
    { retryAfterSecs: RETRY_AFTER_SECS, cause: error },
  );
}

/** An error that the client does not export. */
function isNotEnabled(error: unknown): boolean {
  return error instanceof Error && error.name === "JetStreamNotEnabled";
}
