import { expect, test } from "vitest";
import { Wllama } from "../../../src/engine/core/wllama-api.ts";
import { LLAMA_CPP_BUILD } from "../../../wasm/llama-cpp-build.ts";

test("the build that we name is the one that is installed", () => {
  expect(Wllama.getLibllamaVersion().split("-")[0]).toBe(LLAMA_CPP_BUILD);
});
