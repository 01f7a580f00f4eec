/** A server-sent event without a name: clients of the chat-completions API expect none. */
export function sseData(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

/** A server-sent event with a name; JSON holds no line break, so the data is one line. */
export function sseEvent(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
