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
