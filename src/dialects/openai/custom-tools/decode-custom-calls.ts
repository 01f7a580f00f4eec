import type { ChoiceEvent } from "../../../inference/generate-choices.ts";
import { InputDecoder } from "./input-decoder.ts";

/** An event that may be of a call of a custom tool, whose arguments are its input. */
export type AnswerEvent = ChoiceEvent & { readonly isCustom?: true };

interface OpenCall {
  readonly index: number;
  readonly decoder: InputDecoder;
}

/**
 * Turns the arguments of calls of custom tools into the tools' input; all other events stay as they are.
 * @param names those of the custom tools
 */
export async function* decodeCustomCalls(
  events: AsyncIterable<ChoiceEvent>,
  names: ReadonlySet<string>,
): AsyncGenerator<AnswerEvent, void, undefined> {
  /** The last call of each choice, if it is of a custom tool: calls come one after the other. */
  const open = new Map<number | undefined, OpenCall>();
  for await (const event of events) {
    const { choice } = event;
    const call = open.get(choice);
    if (event.type === "tool-call-delta" && call) {
      const text = call.decoder.push(event.arguments);
      if (text !== "") yield { ...event, arguments: text, isCustom: true };
      continue;
    }
    if (event.type === "tool-call-start" || event.type === "done") {
      const rest = call?.decoder.finish() ?? "";
      open.delete(choice);
      if (call && rest !== "") {
        const delta = {
          type: "tool-call-delta",
          index: call.index,
          arguments: rest,
          isCustom: true,
        } as const;
        yield choice === undefined ? delta : { ...delta, choice };
      }
    }
    const isCustom = event.type === "tool-call-start" && names.has(event.name);
    yield isCustom ? { ...event, isCustom } : event;
    if (isCustom) {
      open.set(choice, { index: event.index, decoder: new InputDecoder() });
    }
  }
}
