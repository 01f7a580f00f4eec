import { ERROR_CODES, type ErrorCode, type ErrorType } from "./error-codes.ts";

/** Maximum length of a message, so that a quoted value is not sent back in full. */
const MAX_MESSAGE_LENGTH = 4096;

/** How much longer than its context a prompt is, in tokens. */
export interface ContextExcess {
  readonly promptTokens: number;
  readonly contextSize: number;
}

interface ServiceErrorOptions {
  /** The cause of this error; logged, never sent to a client. */
  cause?: unknown;
  /** Dotted path of the invalid request field, for dialects that report it. */
  param?: string;
  /** Seconds after which a retry makes sense; becomes the Retry-After header. */
  retryAfterSecs?: number;
  /** The figures of a context_length_exceeded, for dialects that have a sentence for them. */
  contextExcess?: ContextExcess | undefined;
}

/**
 * The error class of the service. Every layer throws it; only the outermost layer converts it to an API's format. Clients
 * match {@link code}, never the message.
 */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly code: ErrorCode;
  readonly type: ErrorType;
  /** HTTP status code. */
  readonly status: number;
  /** Whether the same request may succeed later without changes. */
  readonly retryable: boolean;
  readonly param: string | undefined;
  readonly retryAfterSecs: number | undefined;
  readonly contextExcess: ContextExcess | undefined;

  constructor(code: ErrorCode, message: string, options: ServiceErrorOptions = {}) {
    super(shortened(message), options.cause === undefined ? undefined : { cause: options.cause });
    const definition = ERROR_CODES[code];
    this.code = code;
    this.type = definition.type;
    this.status = definition.status;
    this.retryable = definition.retryable;
    this.param = options.param === undefined ? undefined : shortened(options.param);
    this.retryAfterSecs = options.retryAfterSecs;
    this.contextExcess = options.contextExcess;
  }

  /**
   * Returns `error` itself if it is a ServiceError. Otherwise it becomes the cause of one: `resources_exhausted` if the
   * system has run out of something, `insufficient_disk` if the disk is full, `internal_error` for all others.
   */
  static from(error: unknown): ServiceError {
    if (error instanceof ServiceError) return error;
    const exhausted = exhaustedResource(error);
    if (exhausted !== undefined) {
      return new ServiceError("resources_exhausted", `The request cannot be served now: ${exhausted}.`, {
        cause: error,
      });
    }
    if (isDiskFull(error)) {
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

/** What has run out, by the system's error code, and what helps. */
const EXHAUSTED: Readonly<Record<string, string>> = {
  EMFILE:
    "the daemon has as many files, pipes and connections open as its limit allows (ulimit -n). Try again, or raise the limit",
  ENFILE:
    "the whole system has as many files open as it allows. Close some, or raise its limit (fs.file-max on Linux)",
  EAGAIN:
    "the system allows no further process or thread (ulimit -u, or the container's limit). End some, or raise the limit",
  ENOMEM: "the system has no memory left. Unload a model, end other programs, or raise the limit of memory",
  ENOBUFS: "the system has no memory left for connections. Close some, or raise its limits",
};

/** Whether an error is from the operating system, as reported by Node. */
export function isSystemError(error: unknown): error is NodeJS.ErrnoException & { readonly code: string } {
  return error instanceof Error && "code" in error && typeof error.code === "string";
}

/** Whether the disk is full, or the user's quota. */
export function isDiskFull(error: unknown): boolean {
  return isSystemError(error) && (error.code === "ENOSPC" || error.code === "EDQUOT");
}

/** What the system has run out of, and what helps; undefined for any other error. */
export function exhaustedResource(error: unknown): string | undefined {
  return isSystemError(error) ? EXHAUSTED[error.code] : undefined;
}

/**
 * Rethrows an error if the system has run out of something: it says nothing about the file, which must not be treated as
 * missing or damaged.
 */
export function throwExhaustion(error: unknown): void {
  if (exhaustedResource(error) !== undefined) throw error;
}
