import type { ChoiceEvent } from "../../inference/generate-choices.ts";
import type { ChatCompletionRequest } from "./chat-schema.ts";

/** What a chat request limits its answer to; -1 and undefined: nothing. */
export function chatLimit(body: ChatCompletionRequest): number | undefined {
  return body.max_completion_tokens ?? body.max_tokens ?? body.n_predict ?? undefined;
}

/** An answer without text. The engine has read the prompt, and generated the one token that it generates at least. */
export async function* withoutText(
  events: AsyncIterable<ChoiceEvent>,
): AsyncGenerator<ChoiceEvent, void, undefined> {
  for await (const event of events) {
    if (event.type === "prompt-progress") yield event;
    if (event.type !== "done") continue;
    yield { ...event, reason: "length", usage: { ...event.usage, completionTokens: 0, reasoningTokens: 0 } };
  }
}
