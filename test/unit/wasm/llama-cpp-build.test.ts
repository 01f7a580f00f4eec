import { expect, test } from "vitest";
import { Wllama } from "../../../src/engine/core/wllama-api.ts";
import { LLAMA_CPP_BUILD } from "../../../wasm/llama-cpp-build.ts";

test("the installed build is the one in llama-cpp-build.ts", () => {
  expect(Wllama.getLibllamaVersion().split("-")[0]).toBe(LLAMA_CPP_BUILD);
});
