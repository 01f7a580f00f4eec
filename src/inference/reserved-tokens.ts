import type { EngineInfo, EngineSpec } from "../engine/protocol/engine-spec.ts";
import type { GenerationInput, GenerationRequest } from "../engine/protocol/generation.ts";

/** Tokens that a chat template may add: its own system prompt, today's date, instructions for tools. */
const TEMPLATE_TOKENS = 512;

/** Tokens around one message of a chat, in any template. */
const MESSAGE_TOKENS = 32;

/** Least room for an answer that takes more as it grows: most answers are shorter. */
const LEAST_ANSWER_TOKENS = 1024;

const ENCODER = new TextEncoder();
/** Texts are encoded here only to be measured. */
const SCRATCH = new Uint8Array(16 * 1024);

/** The context of an engine, and among how many slots it is shared. */
interface SlottedContext extends Pick<EngineInfo, "contextSize" | "contextTokens"> {
  readonly slots: number;
}

/**
 * Tokens of context that a generation is admitted with, before the length of its prompt is known: a text has at most as many
 * tokens as bytes. Only the projector knows how many tokens an image or a recording takes, so that one reserves the whole context until
 * they are counted.
 */
export function reservedTokens(request: GenerationRequest, context: SlottedContext): number {
  const { contextSize } = context;
  if (hasMedia(request.input)) return contextSize;
  const promptTokens = assumedTokens(request.input, textBytes(request.input, contextSize));
  return neededTokens(request, promptTokens, context);
}

/**
 * The same once llama.cpp has reported the length of the prompt. In a shared context, an answer that may fill it begins with
 * a fair share and takes more as it grows.
 */
export function neededTokens(
  request: GenerationRequest,
  promptTokens: number,
  context: SlottedContext,
): number {
  const most = mostTokens(request, promptTokens, context);
  const share = Math.floor(context.contextTokens / context.slots);
  const isShared = share < context.contextSize;
  if (!isShared || !mayFill(request, promptTokens, context)) return most;
  // In a small context, half of a share is left for the prompt.
  const leastAnswer = Math.min(LEAST_ANSWER_TOKENS, Math.floor(share / 2));
  return Math.min(most, Math.max(share, promptTokens + leastAnswer));
}

/** Tokens of context that a generation can use at most. */
export function mostTokens(
  { maxTokens }: GenerationRequest,
  promptTokens: number,
  { contextSize }: Pick<SlottedContext, "contextSize">,
): number {
  return maxTokens === undefined ? contextSize : Math.min(contextSize, promptTokens + maxTokens);
}

/**
 * Whether the limit of an answer is none, or hardly one: clients ask for half of the context or more to be on the safe side,
 * and few answers get there.
 */
function mayFill(
  { maxTokens }: GenerationRequest,
  promptTokens: number,
  { contextSize }: SlottedContext,
): boolean {
  return maxTokens === undefined || maxTokens >= contextSize / 2 || promptTokens + maxTokens > contextSize;
}

/**
 * Tokens of context that a text to embed or score may need. Embedding models and rerankers need none. A generative model
 * needs a whole context: if it is shared, llama.cpp does not free what the slot of the next text still holds.
 */
export function embeddedTokens({ purpose }: EngineSpec, { contextSize }: EngineInfo): number {
  return purpose === "generate" ? contextSize : 0;
}

/** Whether only the projector knows the length of the prompt. */
export function hasMedia(input: GenerationInput): boolean {
  return (
    input.kind === "chat" && input.messages.some(({ content }) => content.some(({ type }) => type !== "text"))
  );
}

/** Tokens of a prompt with a text of so many, as far as is known before its template is applied. */
export function assumedTokens(input: GenerationInput, textTokens: number): number {
  if (input.kind === "prompt") return textTokens + MESSAGE_TOKENS;
  return textTokens + input.messages.length * MESSAGE_TOKENS + TEMPLATE_TOKENS;
}

function textBytes(input: GenerationInput, most: number): number {
  if (input.kind === "prompt") return utf8Length(input.prompt, most);
  const { messages, tools, templateVariables } = input;
  return utf8Length(JSON.stringify([messages, tools, templateVariables]), most);
}

/** Bytes of a text in UTF-8, counted only up to `most`. */
function utf8Length(text: string, most: number): number {
  if (text.length >= most) return text.length;
  let bytes = 0;
  for (let at = 0; at < text.length;) {
    const { read, written } = ENCODER.encodeInto(at === 0 ? text : text.slice(at), SCRATCH);
    at += read;
    bytes += written;
  }
  return bytes;
}
