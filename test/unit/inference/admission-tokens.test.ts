import { describe, expect, test } from "vitest";
import type { GenerationRequest } from "../../../src/engine/protocol/generation.ts";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { admissionTokens } from "../../../src/inference/admission-tokens.ts";
import { FakeEngine } from "../../support/fake-engine.ts";
import { never } from "./inference-setup.ts";

const SPEC = { contextSize: 32_768, slots: 4, sharedContext: true };

/** An engine with so many bytes per token, which notes what it counts. */
function engineOf(bytesPerToken: number): { engine: FakeEngine; counted: string[] } {
  const engine = new FakeEngine(SPEC);
  const counted: string[] = [];
  engine.tokenize = (text) => {
    counted.push(text);
    return Promise.resolve(new Int32Array(Math.ceil(text.length / bytesPerToken)));
  };
  return { engine, counted };
}

function chat(characters: number): GenerationRequest {
  return {
    input: {
      kind: "chat",
      messages: [{ role: "user", content: [{ type: "text", text: "x".repeat(characters) }] }],
      tools: [],
      toolChoice: "none",
      parallelToolCalls: false,
    },
    stop: [],
    sampling: {},
    format: { type: "text" },
    cachePrompt: true,
  };
}

describe("a long prompt without a limit of its answer", () => {
  test("is counted while others run, and has a share if it fits into one", async () => {
    const { engine } = engineOf(4);
    expect(await admissionTokens(engine, chat(20_000), true, never)).toBe(8192);
  });

  test("takes what it is counted to need, with what a template may add", async () => {
    const { engine } = engineOf(4);
    const tokens = await admissionTokens(engine, chat(60_000), true, never);
    expect(tokens).toBeGreaterThan(60_000 / 4 + 1024);
    expect(tokens).toBeLessThan(60_000 / 3 + 1024);
  });

  test("is not counted when nothing runs: it is admitted anyway", async () => {
    const { engine, counted } = engineOf(4);
    expect(await admissionTokens(engine, chat(40_000), false, never)).toBe(32_768);
    expect(counted).toEqual([]);
  });

  test("that is too long to be beside others is not counted", async () => {
    const { engine, counted } = engineOf(4);
    expect(await admissionTokens(engine, chat(300_000), true, never)).toBe(32_768);
    expect(counted).toEqual([]);
  });

  test("has one token per byte where it cannot be counted", async () => {
    const { engine } = engineOf(4);
    engine.tokenize = () => Promise.reject(new ServiceError("unsupported_feature", "No tokenizer."));
    expect(await admissionTokens(engine, chat(20_000), true, never)).toBeGreaterThan(20_000);
  });
});

test("a short prompt is not counted", async () => {
  const { engine, counted } = engineOf(4);
  expect(await admissionTokens(engine, chat(100), true, never)).toBe(8192);
  expect(counted).toEqual([]);
});

test("a prompt in a context of its own is not counted", async () => {
  const { counted } = engineOf(4);
  const engine = new FakeEngine({ ...SPEC, sharedContext: false });
  expect(await admissionTokens(engine, chat(40_000), true, never)).toBe(32_768);
  expect(counted).toEqual([]);
});
