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
