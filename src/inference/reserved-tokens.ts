import type { EngineInfo, EngineSpec } from "../engine/protocol/engine-spec.ts";
import type { GenerationInput, GenerationRequest } from "../engine/protocol/generation.ts";

/** Tokens that a chat template may add: its own system prompt, today's date, instructions for tools. */
const TEMPLATE_TOKENS = 512;

/** Tokens around one message of a chat, in any template. */
const MESSAGE_TOKENS = 32;

const ENCODER = new TextEncoder();
/** Texts are encoded here only to be measured. */
const SCRATCH = new Uint8Array(16 * 1024);

/**
 * Tokens of context that a generation may need, before the length of its prompt is known: a text has at most as many tokens
 * as bytes. An answer without a limit may fill the context, and only the projector knows how many tokens an image takes,
 * so both reserve all of it.
 */
export function reservedTokens(request: GenerationRequest, { contextSize }: EngineInfo): number {
  const { input, maxTokens } = request;
  if (maxTokens === undefined || hasImages(input)) return contextSize;
  return Math.min(contextSize, promptBytes(input, contextSize) + maxTokens);
}

/** The same once llama.cpp has reported the length of the prompt. */
export function neededTokens(
  { maxTokens }: GenerationRequest,
  promptTokens: number,
  { contextSize }: EngineInfo,
): number {
  return maxTokens === undefined ? contextSize : Math.min(contextSize, promptTokens + maxTokens);
}

/**
 * Tokens of context that a text to embed or score may need. Embedding models and rerankers need none. A generative model
 * needs a whole context: if it is shared, llama.cpp does not free what the slot of the next text still holds.
 */
export function embeddedTokens({ purpose }: EngineSpec, { contextSize }: EngineInfo): number {
  return purpose === "generate" ? contextSize : 0;
}

function hasImages(input: GenerationInput): boolean {
  return (
    input.kind === "chat" &&
    input.messages.some(({ content }) => content.some(({ type }) => type === "image"))
  );
}

function promptBytes(input: GenerationInput, most: number): number {
  if (input.kind === "prompt") return utf8Length(input.prompt, most) + MESSAGE_TOKENS;
  const { messages, tools, templateVariables } = input;
  const document = utf8Length(JSON.stringify([messages, tools, templateVariables]), most);
  return document + messages.length * MESSAGE_TOKENS + TEMPLATE_TOKENS;
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
