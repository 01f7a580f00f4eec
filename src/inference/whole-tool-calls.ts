import type { ToolCall } from "../engine/protocol/generation.ts";
import type { InferenceEvent } from "./inference.ts";

type WholeCallEvent =
  | Exclude<InferenceEvent, { type: "tool-call-start" | "tool-call-delta" }>
  | { type: "tool-call"; call: ToolCall };

/**
 * Joins the pieces of each tool call into one event, for formats with whole calls. They follow in order just before the end,
 * because any of them may grow until then.
 */
export async function* wholeToolCalls(
  events: AsyncIterable<InferenceEvent>,
): AsyncGenerator<WholeCallEvent, void, undefined> {
  const calls = new Map<number, ToolCall>();
  for await (const event of events) {
    switch (event.type) {
      case "tool-call-start":
        calls.set(event.index, { id: event.id, name: event.name, arguments: "" });
        break;
      case "tool-call-delta": {
        const call = calls.get(event.index);
        if (call) call.arguments += event.arguments;
        break;
      }
      case "done":
        for (const call of calls.values()) yield { type: "tool-call", call };
        yield event;
        break;
      default:
        yield event;
    }
  }
}
