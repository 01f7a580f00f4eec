import { ERROR_CODES, type ErrorCode, type ErrorType } from "./error-codes.ts";

/** Maximum length of a message, so that long quoted values are truncated. */
const MAX_MESSAGE_LENGTH = 4096;

/** Sizes of a prompt and of the context that it exceeds, in tokens. */
export interface ContextExcess {
  readonly promptTokens: number;
  readonly contextSize: number;
}

interface ServiceErrorOptions {
  /** The cause of this error; logged, never sent to a client. */
  cause?: unknown;
  /** Dotted path of the invalid request field, for APIs that report it. */
  param?: string;
  /** Seconds after which a retry makes sense; becomes the Retry-After header. */
  retryAfterSecs?: number;
  /** Sizes of a context_length_exceeded, for APIs with a prescribed message. */
  contextExcess?: ContextExcess | undefined;
}

/**
 * Error of the service. Every layer throws it; only the outermost layer converts it to an API's format. Clients match
 * {@link code}, never the message.
 */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly code: ErrorCode;
  readonly type: ErrorType;
  /** HTTP status code. */
  readonly status: number;
  /** True if the same request may succeed later without changes. */
  readonly retryable: boolean;
  readonly param: string | undefined;
  readonly retryAfterSecs: number | undefined;
  readonly contextExcess: ContextExcess | undefined;

  constructor(code: ErrorCode, message: string, options: ServiceErrorOptions = {}) {
    super(truncate(message), options.cause === undefined ? undefined : { cause: options.cause });
    const definition = ERROR_CODES[code];
    this.code = code;
    this.type = definition.type;
    this.status = definition.status;
    this.retryable = definition.retryable;
    this.param = options.param === undefined ? undefined : truncate(options.param);
    this.retryAfterSecs = options.retryAfterSecs;
    this.contextExcess = options.contextExcess;
  }

  /**
   * Returns `error` itself if it is a ServiceError. Otherwise returns one with it as its cause: `resources_exhausted` if
   * the system has run out of a resource, `insufficient_disk` if the disk is full, `internal_error` for all others.
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

function truncate(text: string): string {
  return text.length > MAX_MESSAGE_LENGTH ? `${text.slice(0, MAX_MESSAGE_LENGTH)}…` : text;
}

/** Explanation of the exhausted resource and advice, by the system's error code. */
const EXHAUSTION_ADVICE: Readonly<Record<string, string>> = {
  EMFILE:
    "the daemon has as many files, pipes and connections open as its limit allows (ulimit -n). Try again, or raise the limit",
  ENFILE:
    "the whole system has as many files open as it allows. Close some, or raise its limit (fs.file-max on Linux)",
  EAGAIN:
    "the system allows no further process or thread (ulimit -u, or the container's limit). End some, or raise the limit",
  ENOMEM: "the system has no memory left. Unload a model, end other programs, or raise the limit of memory",
  ENOBUFS: "the system has no memory left for connections. Close some, or raise its limits",
};

/** Error of the operating system; NodeJS.ErrnoException has no type in the package for browsers. */
interface SystemError extends Error {
  readonly code: string;
  readonly errno?: number;
  readonly path?: string;
  readonly syscall?: string;
}

/** True for an error of the operating system, as reported by Node. */
export function isSystemError(error: unknown): error is SystemError {
  return error instanceof Error && "code" in error && typeof error.code === "string";
}

/** True if import() failed because this installation lacks the module itself. @param name file name without extension */
export function isModuleMissing(error: unknown, name: string): boolean {
  const isMissing = isSystemError(error) && error.code === "ERR_MODULE_NOT_FOUND" && "url" in error;
  return isMissing && new RegExp(`/${name}\\.[jt]s$`).test(String(error.url));
}

/** True if the disk or the user's quota is full. */
export function isDiskFull(error: unknown): boolean {
  return isSystemError(error) && (error.code === "ENOSPC" || error.code === "EDQUOT");
}

/** Explains which resource of the system is exhausted, with advice; undefined for any other error. */
export function exhaustedResource(error: unknown): string | undefined {
  return isSystemError(error) ? EXHAUSTION_ADVICE[error.code] : undefined;
}

/**
 * Rethrows an error if the system has run out of a resource, because then the file must not be treated as missing or
 * damaged.
 */
export function rethrowExhaustion(error: unknown): void {
  if (exhaustedResource(error) !== undefined) throw error;
}

/** Converts any thrown value to an Error. */
export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/**
 * Describes a failure within a sentence; never empty. Usually its message. An error without one, as Node throws it when
 * several addresses of a host refuse, is described by its first inner error or its cause, or else by its code or name.
 */
export function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown) || "for no known reason";
  if (thrown.message !== "") return thrown.message;
  const inner: unknown = thrown instanceof AggregateError ? thrown.errors[0] : thrown.cause;
  if (inner !== undefined) return reasonOf(inner);
  return codeOf(thrown) ?? thrown.name;
}

/** The system's code of a failure, such as ENOSPC, or {@link reasonOf}: Node leaves the code of an unknown failure empty. */
export function codeOrReason(thrown: unknown): string {
  return codeOf(thrown) ?? reasonOf(thrown);
}

function codeOf(thrown: unknown): string | undefined {
  const isNamed = thrown instanceof Error && "code" in thrown && typeof thrown.code === "string";
  return isNamed && thrown.code !== "" ? String(thrown.code) : undefined;
}
