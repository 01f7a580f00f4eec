import { exhaustedResource, isSystemError } from "./exhausted-resource.ts";
import { ERROR_CODES, type ErrorCode, type ErrorType } from "./error-codes.ts";

/** Longest message: what quotes a value of a request must not send it back. */
const MAX_MESSAGE_LENGTH = 4096;
/** The disk itself, or the user's share of it. */
const DISK_FULL: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT"]);

export interface ServiceErrorOptions {
  /** What led to this error; logged, never sent to a client. */
  cause?: unknown;
  /** Dotted path of the request field at fault, for dialects that report one. */
  param?: string;
  /** Seconds after which a retry makes sense; becomes the Retry-After header. */
  retryAfterSecs?: number;
}

/**
 * The one error class of the service. Every layer throws it; only the outermost layer turns it into a wire
 * shape. Clients match {@link code}, never the message.
 */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly code: ErrorCode;
  readonly type: ErrorType;
  /** HTTP status code. */
  readonly status: number;
  /** True when the same request may succeed later without any change. */
  readonly retryable: boolean;
  readonly param: string | undefined;
  readonly retryAfterSecs: number | undefined;

  constructor(code: ErrorCode, message: string, options: ServiceErrorOptions = {}) {
    super(shortened(message), options.cause === undefined ? undefined : { cause: options.cause });
    const definition = ERROR_CODES[code];
    this.code = code;
    this.type = definition.type;
    this.status = definition.status;
    this.retryable = definition.retryable;
    this.param = options.param === undefined ? undefined : shortened(options.param);
    this.retryAfterSecs = options.retryAfterSecs;
  }

  /**
   * Returns `error` itself when it is a ServiceError; else what carries it as its cause: `resources_exhausted` where
   * the system has no more of something, `insufficient_disk` where the disk is full, `internal_error` for all others.
   */
  static from(error: unknown): ServiceError {
    if (error instanceof ServiceError) return error;
    const exhausted = exhaustedResource(error);
    if (exhausted !== undefined) {
      return new ServiceError("resources_exhausted", `The request cannot be served now: ${exhausted}.`, {
        cause: error,
      });
    }
    if (isSystemError(error) && DISK_FULL.has(error.code)) {
      return new ServiceError(
        "insufficient_disk",
        "The disk is full. Delete what is not needed (daybreak rm removes models), then try again.",
        { cause: error },
      );
    }
    return new ServiceError(
      "internal_error",
      "An unexpected error occurred; the daemon's log has the details.",
      {
        cause: error,
      },
    );
  }
}

function shortened(text: string): string {
  return text.length > MAX_MESSAGE_LENGTH ? `${text.slice(0, MAX_MESSAGE_LENGTH)}…` : text;
}
