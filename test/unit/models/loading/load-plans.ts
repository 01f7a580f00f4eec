import type { LoadPlan, MemoryNeeds } from "../../../../src/models/loading/load-planner.ts";
import { NO_SETTINGS } from "../../../../src/models/model.ts";

const MB = 1024 * 1024;

/** A plan for a model of 10 MB, with any specification. */
export function loadPlan(options: Partial<LoadPlan> & { contextSize?: number } = {}): LoadPlan {
  const { contextSize = 512, ...rest } = options;
  const needs: MemoryNeeds = { bytes: rest.bytes ?? 10 * MB, gpuBytes: rest.gpuBytes ?? 0 };
  const plan: LoadPlan = {
    contextSource: "request",
    record: {
      alias: "any",
      source: { kind: "file" },
      files: [{ path: "/models/any.gguf", within: [] }],
      projector: undefined,
      adapters: [],
      gguf: {
        architecture: "llama",
        name: undefined,
        parameters: 1,
        vocabSize: 1,
        contextLength: 512,
        embeddingLength: 1,
        headCount: 1,
        blockCount: 1,
        quantization: "F32",
        fileSize: 1,
        chatTemplate: undefined,
        infill: undefined,
        toolCallTokens: [],
        kvBytesPerToken: 1,
        weightBytes: { blocks: 1, largestInBlocks: 1, embedding: 0, output: 0 },
        purpose: "generate",
        auxiliary: undefined,
        media: { image: false, audio: false },
      },
      settings: NO_SETTINGS,
      digest: undefined,
      modifiedAt: 0,
    },
    spec: {
      modelFiles: ["/models/any.gguf"],
      adapters: [],
      purpose: "generate",
      contextSize,
      sharedContext: true,
      gpuLayers: 0,
      slots: 1,
      threads: 1,
      batchSize: 16,
      flashAttention: "auto",
      contextShift: false,
    },
    ...needs,
    needsOf: () => needs,
    replan: async () => plan,
    keepAliveMs: Number.POSITIVE_INFINITY,
    mayEvict: true,
    ...rest,
  };
  return plan;
}
