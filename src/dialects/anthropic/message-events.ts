import type { Usage } from "../../engine/protocol/generation.ts";
import { sseEvent } from "../../http/streaming/sse-frame.ts";
import { limitFields } from "../../inference/answer-limit.ts";
import type { InferenceEvent } from "../../inference/inference.ts";
import { appliedEdits } from "./context-management.ts";
import { type ContentBlock, type MessageOptions, toStop, toToolUseId, toUsage } from "./message-answer.ts";
import { signOmitted, signThinking } from "./thinking-signature.ts";

/** The server-sent events of a streamed message, in the order clients expect. */
export async function* toMessageEvents(
  options: MessageOptions,
  events: AsyncIterable<InferenceEvent>,
): AsyncGenerator<string, void, undefined> {
  const blocks = new BlockWriter(options.omitsThinking);
  let started = false;
  for await (const event of events) {
    if (event.type === "start") continue;
    if (!started) {
      yield messageStart(options, promptUsage(event));
      yield sseEvent("ping", { type: "ping" });
      started = true;
    }
    if (event.type === "text-delta") yield* blocks.text(event.text);
    else if (event.type === "reasoning-delta") yield* blocks.thinking(event.text);
    else if (event.type === "tool-call-start") yield* blocks.toolUse(toToolUseId(event.id), event.name);
    else if (event.type === "tool-call-delta") yield blocks.inputJson(event.arguments);
    else if (event.type === "done") {
      yield* blocks.close();
      const delta = { ...toStop(event, options.stopSequences), ...limitFields(event) };
      const usage = toUsage(event.usage);
      const applied = appliedEdits(options.contextManagement);
      yield sseEvent("message_delta", { type: "message_delta", delta, usage, ...applied });
      yield sseEvent("message_stop", { type: "message_stop" });
    }
  }
}

type PromptUsage = Pick<Usage, "promptTokens" | "cachedTokens">;

/** The event after start is normally prompt-progress, which has the number of prompt tokens. */
function promptUsage(event: InferenceEvent): PromptUsage {
  if (event.type === "done") return event.usage;
  if (event.type !== "prompt-progress") return { promptTokens: 0, cachedTokens: 0 };
  return { promptTokens: event.total, cachedTokens: event.cached ?? 0 };
}

function messageStart({ id, model }: MessageOptions, { promptTokens, cachedTokens }: PromptUsage): string {
  return sseEvent("message_start", {
    type: "message_start",
    message: {
      id,
      type: "message",
      role: "assistant",
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: toUsage({ promptTokens, cachedTokens, completionTokens: 0 }),
    },
  });
}

/** Writes the content blocks in order; at most one is open. */
class BlockWriter {
  #index = -1;
  #open: ContentBlock["type"] | undefined;
  #thinking = "";
  readonly #omitsThinking: boolean;

  constructor(omitsThinking: boolean) {
    this.#omitsThinking = omitsThinking;
  }

  *text(text: string): Generator<string> {
    if (text === "") return;
    if (this.#open !== "text") yield* this.#start({ type: "text", text: "" });
    yield this.#delta({ type: "text_delta", text });
  }

  *thinking(thinking: string): Generator<string> {
    if (thinking === "") return;
    if (this.#open !== "thinking") yield* this.#start({ type: "thinking", thinking: "", signature: "" });
    this.#thinking += thinking;
    if (!this.#omitsThinking) yield this.#delta({ type: "thinking_delta", thinking });
  }

  *toolUse(id: string, name: string): Generator<string> {
    yield* this.#start({ type: "tool_use", id, name, input: {} });
  }

  inputJson(json: string): string {
    return this.#delta({ type: "input_json_delta", partial_json: json });
  }

  *close(): Generator<string> {
    if (this.#open === undefined) return;
    if (this.#open === "thinking") {
      const sign = this.#omitsThinking ? signOmitted : signThinking;
      yield this.#delta({ type: "signature_delta", signature: sign(this.#thinking) });
      this.#thinking = "";
    }
    yield sseEvent("content_block_stop", { type: "content_block_stop", index: this.#index });
    this.#open = undefined;
  }

  *#start(block: ContentBlock): Generator<string> {
    yield* this.close();
    this.#index += 1;
    this.#open = block.type;
    yield sseEvent("content_block_start", {
      type: "content_block_start",
      index: this.#index,
      content_block: block,
    });
  }

  #delta(delta: object): string {
    return sseEvent("content_block_delta", { type: "content_block_delta", index: this.#index, delta });
  }
}
