import { ServiceError } from "../../errors/service-error.ts";
import type { EngineInfo } from "../protocol/engine-spec.ts";
import { type EngineSettings, engineThreads, totalContext } from "./load-parameters.ts";
import { Wllama } from "./wllama-api.ts";
import type { WllamaSession } from "./wllama-session.ts";

/**
 * What the engine reports about a loaded model.
 * @throws ServiceError invalid_model_file when the model or its projector cannot be used
 */
export function readInfo(
  { info, gpuLayers }: Pick<WllamaSession, "info" | "gpuLayers">,
  settings: EngineSettings,
  hasProjector: boolean,
): EngineInfo {
  if (info.n_embd <= 0 || info.n_vocab <= 0) {
    throw new ServiceError("invalid_model_file", "The model file cannot be used: it has no embedding size.");
  }
  if (hasProjector && !info.has_image_input && !info.has_audio_input) {
    throw new ServiceError("invalid_model_file", "The projector does not fit the model.");
  }
  return {
    contextSize: Math.min(totalContext(settings.contextSize), info.n_ctx_train),
    contextTokens: info.n_ctx,
    trainedContextSize: info.n_ctx_train,
    vocabSize: info.n_vocab,
    embeddingSize: info.n_embd,
    layers: info.n_layer,
    gpuLayers,
    threads: engineThreads(settings),
    hasChatTemplate: settings.chatTemplate !== undefined || "tokenizer.chat_template" in info.metadata,
    hasImageInput: info.has_image_input,
    hasAudioInput: info.has_audio_input && settings.hearsAudio === true,
    backendVersion: Wllama.getLibllamaVersion(),
  };
}

/** What a template ends its prompt with stands behind the last mention of this variable. */
const PROMPT_END = "add_generation_prompt";

/**
 * Whether llama.cpp's grammar for a format has to be told that the answer has no reasoning when thinking is off. A template
 * that ends its prompt with reasoning, begun or complete, must not be read without: the grammar would not fit the prompt.
 * Nor must harmony, whose messages all have channels.
 */
export function canReasonUnasked(template: string): boolean {
  const end = template.slice(template.lastIndexOf(PROMPT_END) + 1);
  return !template.includes("<|channel|>") && !/think|<\|channel>/i.test(end);
}
