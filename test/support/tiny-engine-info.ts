import type { EngineInfo } from "../../src/engine/protocol/engine-spec.ts";

/** Info that fake engine processes report about their model. */
export const TINY_ENGINE_INFO: EngineInfo = {
  contextSize: 512,
  contextTokens: 512,
  trainedContextSize: 512,
  vocabSize: 100,
  embeddingSize: 8,
  layers: 1,
  gpuLayers: 0,
  threads: 1,
  hasChatTemplate: false,
  hasImageInput: false,
  hasAudioInput: false,
  backendVersion: "b1",
};
