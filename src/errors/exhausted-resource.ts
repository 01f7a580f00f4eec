/** What has run out, by the system's code for it, and what helps. */
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

/** True for an error of the operating system, as Node reports it. */
export function isSystemError(error: unknown): error is NodeJS.ErrnoException & { readonly code: string } {
  return error instanceof Error && "code" in error && typeof error.code === "string";
}

/** What the system has no more of, and what helps; undefined for any other error. */
export function exhaustedResource(error: unknown): string | undefined {
  return isSystemError(error) ? EXHAUSTED[error.code] : undefined;
}

/**
 * Throws the error when it says that the system has no more of something: then nothing has been learned about what was
 * looked at, and it must not be taken for missing or damaged.
 */
export function throwExhaustion(error: unknown): void {
  if (exhaustedResource(error) !== undefined) throw error;
}
