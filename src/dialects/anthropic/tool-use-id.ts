/** The id of a tool call as the API writes it, whatever the prefix that it has had before. */
export function toToolUseId(id: string): string {
  return `toolu_${id.replace(/^(?:call|toolu)_/, "")}`;
}
