import { describe, expect, test } from "vitest";
import { fromLoadFailure, fromRejection } from "../../../../src/engine/core/engine-failure.ts";
import { explainExit } from "../../../../src/engine/core/failure-text.ts";
import { EngineCallError, EngineFatalError } from "../../../../src/engine/core/wllama-session.ts";

/** llama.cpp's log of a chat template that failed. */
const report = (reason: string): string =>
  [
    "Unable to generate parser for this template. Automatic parser generation failed: ",
    "------------",
    "While executing CallExpression at line 4, column 69 in source:",
    "...",
    `Error: ${reason}`,
  ].join("\n");

describe("the error of a failed load", () => {
  test.each([
    ["ggml_webgpu: Device error! Reason: 2, Message: [Invalid Buffer] is invalid", "model_load_failed"],
    ["ggml_webgpu: Device lost! Reason: 1, Message: invalid handle", "model_load_failed"],
    ["ggml_webgpu: Device error! Reason: 3, Message: Out of memory", "insufficient_memory"],
    ["llama_model_load: error loading model: invalid magic characters", "invalid_model_file"],
    [
      "/source/llama.cpp/ggml/src/ggml.c:1644: GGML_ASSERT(ctx->mem_buffer != NULL) failed",
      "insufficient_memory",
    ],
    ["/source/llama.cpp/src/llama-vocab.cpp:2361: GGML_ASSERT(a == b) failed", "invalid_model_file"],
    ["common_chat_templates_init: error: Unexpected token: %} of type 9", "invalid_template"],
    [`srv init: init: chat template parsing error: ${report("std::bad_alloc")}`, "invalid_template"],
    ["Maximum call stack size exceeded", "invalid_template"],
  ])("for %j has the code %s", (message, code) => {
    expect(fromLoadFailure(new EngineFatalError(message)).code).toBe(code);
  });

  test.each([
    [
      "llama_model_load: error loading model: missing tensor 'blk.2.attn_norm.weight'",
      "the tensor blk.2.attn_norm.weight is missing",
    ],
    [
      "llama_model_load: error loading model: error loading model architecture: unknown model architecture: 'x'",
      'llama.cpp does not support its architecture "x"',
    ],
    [
      "llama_model_load: error loading model hyperparameters: key not found in model: llama.context_length",
      "the key llama.context_length is missing",
    ],
    ["/source/llama.cpp/src/llama-vocab.cpp:2361: GGML_ASSERT(a == b) failed", "its vocabulary is damaged"],
    [
      "llama_adapter_lora_init: failed to apply lora adapter: tensor 'blk.0.attn_q.weight' has incorrect shape (hint: maybe wrong base model?)",
      "an adapter does not fit the model",
    ],
    [
      "llama_adapter_lora_init: failed to apply lora adapter: LoRA tensor pair for 'blk.0.attn_q.weight' is missing one component",
      "an adapter does not fit the model",
    ],
    ["remainder by zero", "the values in its header are inconsistent"],
    ["memory access out of bounds", "the values in its header are inconsistent"],
    ["llama_model_load: error loading model: std::length_error", "llama.cpp rejected it"],
  ])("for %j says: %s", (message, sentence) => {
    expect(fromLoadFailure(new EngineFatalError(message)).message).toBe(
      `The model file cannot be used: ${sentence}.`,
    );
  });
});

describe("the error of a request that llama.cpp rejects", () => {
  test.each([
    [
      report("Jinja Exception: Roles must alternate"),
      "invalid_parameter",
      /rejects the request: Roles must alternate$/,
    ],
    [
      report("Callee is not a function"),
      "invalid_parameter",
      /cannot render this request: Callee is not a function/,
    ],
    [report("std::bad_alloc"), "invalid_template", /more memory than the model has/],
    ["std::bad_alloc", "insufficient_memory", /more memory than the model has/],
    ["std::length_error", "invalid_parameter", /llama.cpp cannot parse it/],
    ["Input content cannot be empty", "invalid_parameter", /cannot embed an empty text/],
  ])("because of %j is explained to users", (message, code, words) => {
    const error = fromRejection(new EngineCallError(message));
    expect(error).toMatchObject({ code, message: expect.stringMatching(words) });
  });
});

test.each([
  ["exited with code 7 (Error: the disk is on fire)", "exited with code 7 (Error: the disk is on fire)"],
  [
    "/source/llama.cpp/src/x.cpp:1: GGML_ASSERT(batch.size() > 0) failed",
    "llama.cpp failed an internal check; see the log for its message",
  ],
  ["Aborted(OOM)", "the model ran out of memory"],
  ["Maximum call stack size exceeded", "its input was nested too deeply"],
])("the end of an engine with %j is explained as: %s", (reason, explanation) => {
  expect(explainExit(reason)).toBe(explanation);
});
