const PREFIX = "call_";

/** The id of a tool call as the API writes it; the engine's own have no prefix. */
export function toCallId(id: string): string {
  return id.startsWith(PREFIX) ? id : PREFIX + id;
}
