import { expect, test } from "vitest";
import { FailureLog } from "../../../../src/engine/core/llama-log.ts";

test("a lost GPU is the reason; that there is none is not", () => {
  const log = new FailureLog();
  log.add("info", "ggml_webgpu: Failed to get an adapter: WebGPU not available on this browser");
  log.add("error", "llama_model_load: error loading model");
  expect(log.reason).toBe("llama_model_load: error loading model");
  log.add("info", "ggml-webgpu.cpp:499: ggml_webgpu: Queue wait timed out after 30000 ms");
  expect(log.reason).toMatch(/^ggml-webgpu.cpp:499: ggml_webgpu: Queue wait timed out/);
});
