import { z } from "zod";
import type { Usage } from "../../engine/protocol/generation.ts";
import { sseEvent } from "../../http/streaming/stream-response.ts";
import type { Answer } from "../../inference/collect-answer.ts";
import { type InferenceEvent } from "../../inference/inference.ts";
import { isRecord, tryJson } from "../../json/json-values.ts";
import { signOmittedThinking, signThinking } from "./content-blocks.ts";
import { appliedEdits, appliedEditsField } from "./message-schema.ts";
import { limitField } from "../wire/answer-fields.ts";

const contentBlockSchema = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("thinking"),
    thinking: z.string().describe("Empty if thinking.display is omitted."),
    signature: z.string(),
  }),
  // No citations field: clients disagree on whether an answer without citations has a list, null or nothing.
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({
    type: z.literal("tool_use"),
    id: z.string(),
    name: z.string(),
    input: z
      .record(z.string(), z.unknown())
      .describe("The arguments; if max_tokens cut them off, the complete part."),
  }),
]);
type ContentBlock = z.output<typeof contentBlockSchema>;

const stopReasonSchema = z.enum(["end_turn", "max_tokens", "stop_sequence", "tool_use"]);

const usageSchema = z.object({
  input_tokens: z.int().describe("Prompt tokens that were processed, chat template included."),
  output_tokens: z.int().describe("Tokens generated, thinking included."),
  cache_creation_input_tokens: z.int().describe("Always 0: every prompt is cached automatically."),
  cache_read_input_tokens: z
    .int()
    .describe("Prompt tokens reused from the KV cache; input_tokens does not include them."),
});

export const messageSchema = z
  .object({
    id: z.string(),
    type: z.literal("message"),
    role: z.literal("assistant"),
    model: z.string().describe("The model that generated the answer."),
    content: z.array(contentBlockSchema),
    stop_reason: stopReasonSchema.nullable(),
    stop_sequence: z.string().nullable(),
    limited_by: limitField,
    context_management: appliedEditsField,
    usage: usageSchema,
  })
  .meta({ id: "Message" });
type Message = z.output<typeof messageSchema>;

/** Converts a tool call's ID to one with this API's prefix. */
function toToolUseId(id: string): string {
  return `toolu_${id.replace(/^(?:call|toolu)_/, "")}`;
}

function toUsage(usage: Pick<Usage, "promptTokens" | "completionTokens" | "cachedTokens">): Message["usage"] {
  return {
    input_tokens: usage.promptTokens - usage.cachedTokens,
    output_tokens: usage.completionTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: usage.cachedTokens,
  };
}

/** @param requested stop sequences of the request; one from the model's settings is reported as end_turn */
function toStopFields(
  { reason, stopSequence }: Pick<Answer, "reason"> & { readonly stopSequence?: string | undefined },
  requested: readonly string[],
): { stop_reason: z.output<typeof stopReasonSchema>; stop_sequence: string | null } {
  if (reason === "length") return { stop_reason: "max_tokens", stop_sequence: null };
  if (reason === "tool_calls") return { stop_reason: "tool_use", stop_sequence: null };
  return stopSequence !== undefined && requested.includes(stopSequence)
    ? { stop_reason: "stop_sequence", stop_sequence: stopSequence }
    : { stop_reason: "end_turn", stop_sequence: null };
}

/** Options common to a message and a stream of events. */
interface MessageOptions {
  readonly id: string;
  readonly model: string;
  /** Stop sequences of the request. */
  readonly stopSequences: readonly string[];
  /** Send thinking blocks with a signature and without text. */
  readonly omitsThinking: boolean;
  /** Field context_management of the request. */
  readonly contextManagement?: unknown;
}

export function toMessage(
  { id, model, stopSequences, omitsThinking, contextManagement }: MessageOptions,
  answer: Answer,
): Message {
  const content: ContentBlock[] = [];
  const { reasoning } = answer;
  if (reasoning !== "") {
    content.push(
      omitsThinking
        ? { type: "thinking", thinking: "", signature: signOmittedThinking(reasoning) }
        : { type: "thinking", thinking: reasoning, signature: signThinking(reasoning) },
    );
  }
  if (answer.text !== "") content.push({ type: "text", text: answer.text });
  for (const call of answer.toolCalls) {
    content.push({
      type: "tool_use",
      id: toToolUseId(call.id),
      name: call.name,
      input: parseInput(call.arguments),
    });
  }
  return {
    id,
    type: "message",
    role: "assistant",
    model,
    content,
    ...toStopFields(answer, stopSequences),
    limited_by: answer.limitedBy,
    ...appliedEdits(contextManagement),
    usage: toUsage(answer.usage),
  };
}

/**
 * Parses the arguments of a tool call. If max_tokens cut them off, returns the complete part, as the official client
 * does with a stream: closes open brackets, and drops members and items that may be incomplete. Returns an empty object
 * if the text is not a JSON object.
 */
export function parseInput(text: string): Record<string, unknown> {
  const { lastComplete: last, closing: rest } = closeTruncatedJson(text);
  // A number at the end of the text may lack digits.
  const candidates = /[\d.]$/.test(text) ? [last] : [text + rest, last];
  for (const candidate of candidates) {
    const value = tryJson(candidate);
    if (isRecord(value)) return { ...value };
  }
  return {};
}

/**
 * Completes truncated JSON: `closing` closes all open brackets of the text; `lastComplete` is the text up to its last
 * complete item, closed.
 */
function closeTruncatedJson(text: string): { lastComplete: string; closing: string } {
  const open: string[] = [];
  const closing = (): string => open.toReversed().join("");
  let last = "";
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*(?:"|\\?$)|[{}[\],]/gs)) {
    if (token === "{" || token === "[") {
      open.push(token === "{" ? "}" : "]");
      last = text.slice(0, index + 1) + closing();
    } else if (token === "}" || token === "]") open.pop();
    else if (token === ",") last = text.slice(0, index) + closing();
  }
  return { lastComplete: last, closing: closing() };
}

/** Yields the server-sent events of a streamed message, in the order that clients expect. */
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
      const delta = { ...toStopFields(event, options.stopSequences), limited_by: event.limitedBy };
      const usage = toUsage(event.usage);
      const applied = appliedEdits(options.contextManagement);
      yield sseEvent("message_delta", { type: "message_delta", delta, usage, ...applied });
      yield sseEvent("message_stop", { type: "message_stop" });
    }
  }
}

type PromptUsage = Pick<Usage, "promptTokens" | "cachedTokens">;

/**
 * Usage for message_start. The event after start is normally prompt-progress, which has the number of prompt tokens.
 */
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
      const sign = this.#omitsThinking ? signOmittedThinking : signThinking;
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
