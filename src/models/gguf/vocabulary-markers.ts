import type { GgufSummary, InfillTokens } from "../model.ts";
import type { Metadata } from "./read-metadata.ts";

/**
 * The keys that name the tokens, newest first, and the texts by which llama.cpp knows them in models without such
 * keys (llama_vocab::impl::load): of Qwen, Granite and StarCoder, DeepSeek, CodeLlama, GLM.
 */
const SOURCES: Readonly<Record<Part, { keys: readonly string[]; texts: string }>> = {
  prefix: {
    keys: ["fim_pre_token_id", "prefix_token_id"],
    texts: "<|fim_prefix|> <fim-prefix> <fim_prefix> <｜fim▁begin｜> <PRE> ▁<PRE> <|code_prefix|>",
  },
  suffix: {
    keys: ["fim_suf_token_id", "suffix_token_id"],
    texts: "<|fim_suffix|> <fim-suffix> <fim_suffix> <｜fim▁hole｜> <SUF> ▁<SUF> <|code_suffix|>",
  },
  middle: {
    keys: ["fim_mid_token_id", "middle_token_id"],
    texts: "<|fim_middle|> <fim-middle> <fim_middle> <｜fim▁end｜> <MID> ▁<MID> <|code_middle|>",
  },
  repository: {
    keys: ["fim_rep_token_id"],
    texts: "<|fim_repo|> <|repo_name|> <fim-repo> <REPO> <reponame>",
  },
  file: { keys: ["fim_sep_token_id"], texts: "<|file_sep|>" },
};
/** Hermes, Qwen, Granite, GLM, Phi, Kimi, DeepSeek, Mistral, Llama: all have one of these words in the token. */
const CALL = /tool[_▁]?calls?|function[_▁]?calls?|python_tag/i;
/** Tokens that end a call, or begin its result. */
const NO_BEGIN = /\/|end|response|result|output/i;

type Part = keyof InfillTokens;

/** The tokens with which a model is asked to fill a gap; undefined when it lacks one of the three. */
export function infillTokens(metadata: Metadata): GgufSummary["infill"] {
  const prefix = tokenText(metadata, "prefix");
  const suffix = tokenText(metadata, "suffix");
  const middle = tokenText(metadata, "middle");
  if (prefix === undefined || suffix === undefined || middle === undefined) return undefined;
  const repository = tokenText(metadata, "repository");
  const file = tokenText(metadata, "file");
  return {
    prefix,
    suffix,
    middle,
    ...(repository !== undefined && { repository }),
    ...(file !== undefined && { file }),
  };
}

function tokenText(metadata: Metadata, part: Part): string | undefined {
  const tokens = metadata.get("tokenizer.ggml.tokens");
  const markers = typeof tokens === "object" ? tokens.markers : undefined;
  if (markers === undefined) return undefined;
  const { keys, texts } = SOURCES[part];
  const ids = keys.map((key) => metadata.get(`tokenizer.ggml.${key}`));
  const id = ids.find((value) => typeof value === "number");
  if (id !== undefined) return markers.get(id);
  const known = new Set(texts.split(" "));
  return [...markers.values()].find((text) => known.has(text));
}

/** Ids of the tokens of a vocabulary with which a model begins a tool call. */
export function callTokens(metadata: Metadata): number[] {
  const tokens = metadata.get("tokenizer.ggml.tokens");
  const markers = typeof tokens === "object" ? tokens.markers : undefined;
  return [...(markers ?? [])].filter(([, text]) => CALL.test(text) && !NO_BEGIN.test(text)).map(([id]) => id);
}
