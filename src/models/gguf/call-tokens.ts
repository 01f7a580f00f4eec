import type { Metadata } from "./read-metadata.ts";

/** Hermes, Qwen, Granite, GLM, Phi, Kimi, DeepSeek, Mistral, Llama: all have one of these words in the token. */
const CALL = /tool[_▁]?calls?|function[_▁]?calls?|python_tag/i;
/** Tokens that end a call, or begin its result. */
const NO_BEGIN = /\/|end|response|result|output/i;

/** Ids of the tokens of a vocabulary with which a model begins a tool call. */
export function callTokens(metadata: Metadata): number[] {
  const tokens = metadata.get("tokenizer.ggml.tokens");
  const markers = typeof tokens === "object" ? tokens.markers : undefined;
  return [...(markers ?? [])].filter(([, text]) => CALL.test(text) && !NO_BEGIN.test(text)).map(([id]) => id);
}
