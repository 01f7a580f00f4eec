import { ERROR_CODES, type ErrorCode, type ErrorType } from "./error-codes.ts";

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
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    const definition = ERROR_CODES[code];
    this.code = code;
    this.type = definition.type;
    this.status = definition.status;
    this.retryable = definition.retryable;
    this.param = options.param;
    this.retryAfterSecs = options.retryAfterSecs;
  }

  /** Returns `error` itself when it is a ServiceError, else an `internal_error` that carries it as its cause. */
  static from(error: unknown): ServiceError {
    if (error instanceof ServiceError) return error;
    return new ServiceError(
      "internal_error",
      "An unexpected error occurred; the daemon's log has the details.",
      {
        cause: error,
      },
    );
  }
}
