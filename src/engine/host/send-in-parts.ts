import { MessageTooLargeError } from "../channel/message-codec.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { GenerationEvent } from "../protocol/generation.ts";
import { type EngineMessage, toReportedError } from "../protocol/messages.ts";

type Post = (message: EngineMessage, written?: () => void) => void;

/**
 * Sends a message. Splits events into several messages if they exceed the size of one.
 * @param written called when the last message has been written
 */
export function sendInParts(message: EngineMessage, post: Post, written?: () => void): void {
  try {
    post(message, written);
  } catch (error) {
    if (!(error instanceof MessageTooLargeError)) throw error;
    if (message.type !== "events") return sendFailure(message, post, written);
    const [first, second] = message.events.length > 1 ? halves(message.events) : split(message.events[0]);
    if (!first) return sendFailure(message, post, written);
    sendInParts({ ...message, events: first }, post);
    sendInParts({ ...message, events: second }, post, written);
  }
}

function halves<Item>(items: readonly Item[]): [Item[], Item[]] {
  const middle = Math.ceil(items.length / 2);
  return [items.slice(0, middle), items.slice(middle)];
}

/** Splits one event into two with the same meaning; `[undefined]` if that is not possible. */
function split(event: GenerationEvent | undefined): [GenerationEvent[], GenerationEvent[]] | [undefined] {
  switch (event?.type) {
    case "text-delta": {
      const [text, moreText] = textHalves(event.text);
      const [logprobs, moreLogprobs] = event.logprobs ? halves(event.logprobs) : [];
      if (text === "" && (logprobs?.length ?? 0) < 2) return [undefined];
      return [
        [{ type: "text-delta", text, ...(logprobs && { logprobs }) }],
        [{ type: "text-delta", text: moreText, ...(moreLogprobs && { logprobs: moreLogprobs }) }],
      ];
    }
    case "reasoning-delta": {
      const [text, more] = textHalves(event.text);
      return [[{ ...event, text, ends: undefined }], [{ ...event, text: more, ends: undefined }]];
    }
    case "tool-call-delta": {
      const [text, more] = textHalves(event.arguments);
      return [
        [{ ...event, arguments: text, ends: undefined }],
        [{ ...event, arguments: more, ends: undefined }],
      ];
    }
    default:
      return [undefined];
  }
}

/** Splits a text in the middle, but not within a surrogate pair. */
function textHalves(text: string): [string, string] {
  const characters = text.length >> 1;
  const isPair = /[\uD800-\uDBFF]/.test(text[characters - 1] ?? "");
  const middle = isPair ? characters - 1 : characters;
  return [text.slice(0, middle), text.slice(middle)];
}

/** Fails a call whose answer does not fit into a message. */
function sendFailure(message: EngineMessage, post: Post, written?: () => void): void {
  if (!("call" in message)) throw new TypeError(`The message ${message.type} is too large.`);
  const error = new ServiceError("inference_failed", "The answer is too large to be sent.");
  post({ type: "call-failed", call: message.call, error: toReportedError(error) }, written);
}
