import type { LoadRequest, MemoryNeeds } from "../../../../src/models/loading/load-request.ts";
import { NO_SETTINGS } from "../../../../src/models/registry/model-record.ts";

const MB = 1024 * 1024;

/** A request to load some model of 10 MB; started otherwise, it would take as much. */
export function loadRequest(options: Partial<LoadRequest> & { contextSize?: number } = {}): LoadRequest {
  const { contextSize = 512, ...rest } = options;
  const needs: MemoryNeeds = { bytes: rest.bytes ?? 10 * MB, gpuBytes: rest.gpuBytes ?? 0 };
  const request: LoadRequest = {
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
        quantisation: "F32",
        fileSize: 1,
        chatTemplate: undefined,
        infill: undefined,
        callTokens: [],
        kvBytesPerToken: 1,
        weightBytes: { blocks: 1, largestInBlocks: 1, embedding: 0, output: 0 },
        purpose: "generate",
        auxiliary: undefined,
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
    replan: async () => request,
    keepAliveMs: Number.POSITIVE_INFINITY,
    mayEvict: true,
    ...rest,
  };
  return request;
}
