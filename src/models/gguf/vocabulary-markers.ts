import { withoutUndefined } from "../../json/json-values.ts";
import type { GgufSummary, InfillTokens } from "../model.ts";
import type { Metadata } from "./read-metadata.ts";

/**
 * Keys of the fill-in-the-middle tokens, the newest first, and texts by which llama.cpp recognizes the tokens in models
 * without these keys (llama_vocab::impl::load): Qwen, Granite and StarCoder, DeepSeek, CodeLlama, GLM.
 */
const INFILL_TOKENS: Readonly<Record<Part, { keys: readonly string[]; texts: string }>> = {
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
/** Words in the tool-call tokens of Hermes, Qwen, Granite, GLM, Phi, Kimi, DeepSeek, Mistral and Llama. */
const TOOL_CALL = /tool[_▁]?calls?|function[_▁]?calls?|python_tag/i;
/** Words in tokens that end a tool call, or begin its result. */
const NOT_A_CALL_START = /\/|end|response|result|output/i;

type Part = keyof InfillTokens;

/** Returns the fill-in-the-middle tokens; undefined if one of the three required ones is missing. */
export function infillTokens(metadata: Metadata): GgufSummary["infill"] {
  const text = (part: Part): string | undefined => tokenText(metadata, part);
  const [prefix, suffix, middle] = [text("prefix"), text("suffix"), text("middle")];
  if (prefix === undefined || suffix === undefined || middle === undefined) return undefined;
  return {
    prefix,
    suffix,
    middle,
    ...withoutUndefined({ repository: text("repository"), file: text("file") }),
  };
}

function markersIn(metadata: Metadata): ReadonlyMap<number, string> {
  const tokens = metadata.get("tokenizer.ggml.tokens");
  return (typeof tokens === "object" ? tokens.markers : undefined) ?? new Map();
}

function tokenText(metadata: Metadata, part: Part): string | undefined {
  const markers = markersIn(metadata);
  const { keys, texts } = INFILL_TOKENS[part];
  const ids = keys.map((key) => metadata.get(`tokenizer.ggml.${key}`));
  const id = ids.find((value) => typeof value === "number");
  if (id !== undefined) return markers.get(id);
  const known = new Set(texts.split(" "));
  return [...markers.values()].find((text) => known.has(text));
}

/** Returns the ids of the tokens that begin a tool call. */
export function toolCallTokens(metadata: Metadata): number[] {
  return [...markersIn(metadata)]
    .filter(([, text]) => TOOL_CALL.test(text) && !NOT_A_CALL_START.test(text))
    .map(([id]) => id);
}
