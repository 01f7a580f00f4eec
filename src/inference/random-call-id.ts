/** An id for a tool call that the engine did not name. */
export function randomCallId(): string {
  return `call_${crypto.randomUUID().replaceAll("-", "")}`;
}
