import { ServiceError } from "../../../errors/service-error.ts";
import type { Inference, InferenceStream } from "../../../inference/inference.ts";
import { isMessage, type InputItem } from "./input-items.ts";
import { type Conversation, toInferenceRequest } from "./response-request.ts";
import type { ResponseRequest } from "./response-schema.ts";

/**
 * Starts generating. With truncation "auto", a conversation that does not fit the context is retried without its
 * oldest turns: it drops one turn, then two more, then four more. Instructions and the last turn always stay.
 */
export async function generateWithTruncation(
  inference: Pick<Inference, "generate">,
  body: ResponseRequest,
  conversation: Conversation,
  signal: AbortSignal,
): Promise<InferenceStream> {
  let rest = conversation;
  for (let turns = 1; ; turns *= 2) {
    try {
      return await inference.generate(toInferenceRequest(body, rest), signal);
    } catch (error) {
      const items = withoutOldestTurns(rest.items, turns);
      if (body.truncation !== "auto" || !isTooLong(error) || items.length === rest.items.length) throw error;
      rest = { items, earlier: 0 };
    }
  }
}

function isTooLong(error: unknown): boolean {
  return error instanceof ServiceError && error.code === "context_length_exceeded";
}

/** A turn starts with a user message. Instructions belong to no turn and always stay. */
function withoutOldestTurns(items: readonly InputItem[], count: number): readonly InputItem[] {
  const starts = [...items.keys()].filter((index) => isUser(items[index]));
  const firstKept = starts[Math.min(count, starts.length - 1)] ?? 0;
  return items.filter((item, index) => index >= firstKept || isInstruction(item));
}

function isUser(item: InputItem | undefined): boolean {
  return item !== undefined && isMessage(item) && item.role === "user";
}

function isInstruction(item: InputItem): boolean {
  return isMessage(item) && (item.role === "system" || item.role === "developer");
}
