import { expect, test } from "vitest";
import { fromLoadFailure } from "../../../../src/engine/core/engine-failure.ts";
import { EngineFatalError } from "../../../../src/engine/core/wllama-session.ts";

test.each([
  ["ggml_webgpu: Device error! Reason: 2, Message: [Invalid Buffer] is invalid", "model_load_failed"],
  ["ggml_webgpu: Device lost! Reason: 1, Message: invalid handle", "model_load_failed"],
  ["ggml_webgpu: Device error! Reason: 3, Message: Out of memory", "insufficient_memory"],
  ["llama_model_load: error loading model: invalid magic characters", "invalid_model_file"],
])("a load that ends with %j is %s", (message, code) => {
  expect(fromLoadFailure(new EngineFatalError(message)).code).toBe(code);
});
