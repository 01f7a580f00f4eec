/**
 * What is to be said of a failure within a sentence, never empty: its message; of one without, which Node throws where several
 * addresses of a host refuse, that of its first part or of its cause, else its code or its name.
 */
export function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown) || "for no known reason";
  if (thrown.message !== "") return thrown.message;
  const inner: unknown = thrown instanceof AggregateError ? thrown.errors[0] : thrown.cause;
  if (inner !== undefined) return reasonOf(inner);
  return codeOf(thrown) ?? thrown.name;
}

/** The system's word for a failure, ENOSPC say; {@link reasonOf} where it has none: Node leaves the code of an unknown one empty. */
export function codeOrReason(thrown: unknown): string {
  return codeOf(thrown) ?? reasonOf(thrown);
}

function codeOf(thrown: unknown): string | undefined {
  const isNamed = thrown instanceof Error && "code" in thrown && typeof thrown.code === "string";
  return isNamed && thrown.code !== "" ? String(thrown.code) : undefined;
}
