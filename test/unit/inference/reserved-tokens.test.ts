import { describe, expect, test } from "vitest";
import type { GenerationInput, GenerationRequest } from "../../../src/engine/protocol/generation.ts";
import { neededTokens, reservedTokens } from "../../../src/inference/reserved-tokens.ts";

const SHARED = { contextSize: 32_768, contextTokens: 32_768, slots: 4 };
const SHARE = 8192;
const OWN = { contextSize: 4096, contextTokens: 16_384, slots: 4 };

function request(maxTokens?: number, input?: GenerationInput): GenerationRequest {
  return {
    input: input ?? { kind: "prompt", prompt: "Once upon a time" },
    ...(maxTokens !== undefined && { maxTokens }),
    stop: [],
    sampling: {},
    format: { type: "text" },
    cachePrompt: true,
  };
}

const WITH_IMAGE: GenerationInput = {
  kind: "chat",
  messages: [{ role: "user", content: [{ type: "image", data: new Uint8Array(1) }] }],
  tools: [],
  toolChoice: "none",
  parallelToolCalls: false,
};

describe("in a shared context", () => {
  test.each([
    ["without a limit has a fair share", undefined, 100, SHARE],
    ["with a limit of half the context too", 16_384, 100, SHARE],
    ["with a limit above the context too", 100_000, 100, SHARE],
    ["with a prompt longer than a share has room for its beginning", undefined, 10_000, 11_024],
    ["whose limit does not fit behind the prompt as well", 4096, 30_000, 31_024],
    ["has no more than the context", undefined, 32_700, 32_768],
    ["with a limit below that has its prompt and its limit", 4096, 100, 4196],
  ])("an answer %s", (_, maxTokens, promptTokens, expected) => {
    expect(neededTokens(request(maxTokens), promptTokens, SHARED)).toBe(expected);
  });

  test("as many answers run as there are slots, in a small one too", () => {
    const small = { contextSize: 256, contextTokens: 256, slots: 4 };
    expect(neededTokens(request(), 20, small)).toBe(64);
    expect(neededTokens(request(), 50, small)).toBe(82);
  });

  test("the prompt is taken for as many tokens as bytes until it is counted", () => {
    expect(reservedTokens(request(10), SHARED)).toBe(16 + 32 + 10);
    expect(reservedTokens(request(), SHARED)).toBe(SHARE);
  });

  test("images are taken for the whole context until they are counted", () => {
    expect(reservedTokens(request(10, WITH_IMAGE), SHARED)).toBe(32_768);
  });
});

test("a context of its own is an answer's alone, as far as it may need it", () => {
  expect(reservedTokens(request(), OWN)).toBe(4096);
  expect(neededTokens(request(4000), 500, OWN)).toBe(4096);
  expect(neededTokens(request(100), 500, OWN)).toBe(600);
});
