import type { EngineInfo, EngineSpec } from "../engine/protocol/engine-spec.ts";
import type { GenerationInput, GenerationRequest } from "../engine/protocol/generation.ts";

/** What a chat template may add for itself: a system prompt of its own, today's date, instructions for tools. */
const TEMPLATE_TOKENS = 512;

/** Marks around one message of a chat, in any template. */
const MESSAGE_TOKENS = 32;

/**
 * Tokens of context that a generation may come to need, while nobody knows how long its prompt is: no
 * tokenizer makes more tokens of a text than it has bytes. Without a limit of its own an answer may fill the context,
 * and what a picture takes is known to the projector alone; both get all of it.
 */
export function reservedTokens(request: GenerationRequest, { contextSize }: EngineInfo): number {
  const { input, maxTokens } = request;
  if (maxTokens === undefined || hasImages(input)) return contextSize;
  return Math.min(contextSize, promptBytes(input) + maxTokens);
}

/** The same when llama.cpp has said how long the prompt is. */
export function neededTokens(
  { maxTokens }: GenerationRequest,
  promptTokens: number,
  { contextSize }: EngineInfo,
): number {
  return maxTokens === undefined ? contextSize : Math.min(contextSize, promptTokens + maxTokens);
}

/**
 * Tokens that one text to embed or to score may take. Models that only do this keep none. A model for text gets a
 * whole context: where that is shared, llama.cpp does not give the one text the room that is still taken by what the
 * slot of the next text held before.
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

function promptBytes(input: GenerationInput): number {
  if (input.kind === "prompt") return Buffer.byteLength(input.prompt) + MESSAGE_TOKENS;
  const { messages, tools, templateVariables } = input;
  const document = Buffer.byteLength(JSON.stringify([messages, tools, templateVariables]));
  return document + messages.length * MESSAGE_TOKENS + TEMPLATE_TOKENS;
}
