import { ServiceError } from "../../errors/service-error.ts";
import type { EngineInfo } from "../protocol/engine-spec.ts";
import { type EngineSettings, engineThreads, roundContextSize } from "./load-parameters.ts";
import { Wllama } from "./wllama-api.ts";
import type { WllamaSession } from "./wllama-session.ts";

/**
 * Reads the properties of a loaded model.
 * @throws ServiceError invalid_model_file if the model or its projector cannot be used
 */
export function readEngineInfo(
  { info, gpuLayers }: WllamaSession,
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
    contextSize: Math.min(roundContextSize(settings.contextSize), info.n_ctx_train),
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

/** Variable of chat templates. The text after its last use is the end of the prompt. */
const PROMPT_END_VARIABLE = "add_generation_prompt";

/**
 * True if a request for a format with thinking turned off must disable reasoning in llama.cpp, whose grammar would
 * otherwise allow reasoning before the answer. False for templates whose prompt ends with reasoning tags, because a
 * grammar without reasoning would not match that prompt, and for harmony templates, where every message has a channel.
 */
export function mustDisableReasoning(template: string): boolean {
  const end = template.slice(template.lastIndexOf(PROMPT_END_VARIABLE) + 1);
  return !template.includes("<|channel|>") && !/think|<\|channel>/i.test(end);
}
