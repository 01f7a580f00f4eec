import { describe, expect, test } from "vitest";
import type {
  GenerationEvent,
  GenerationInput,
  GenerationRequest,
} from "../../../src/engine/protocol/generation.ts";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { AdmissionQueue, type Permit } from "../../../src/inference/admission-queue.ts";
import {
  admissionTokens,
  generateWithinContext,
  neededTokens,
  reservedTokens,
} from "../../../src/inference/context-budget.ts";
import { aborted, DONE, FakeEngine } from "../../support/fake-engine.ts";
import { never } from "./inference-setup.ts";

const SHARED = { contextSize: 32_768, contextTokens: 32_768, slots: 4 };
const SHARE = 8192;
const OWN = { contextSize: 4096, contextTokens: 16_384, slots: 4 };

function reservedTokensRequest(maxTokens?: number, input?: GenerationInput): GenerationRequest {
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
    expect(neededTokens(reservedTokensRequest(maxTokens), promptTokens, SHARED)).toBe(expected);
  });

  test("all slots can run answers, even if the context is small", () => {
    const small = { contextSize: 256, contextTokens: 256, slots: 4 };
    expect(neededTokens(reservedTokensRequest(), 20, small)).toBe(64);
    expect(neededTokens(reservedTokensRequest(), 50, small)).toBe(82);
  });

  test("a prompt reserves one token per byte until it is counted", () => {
    expect(reservedTokens(reservedTokensRequest(10), SHARED)).toBe(16 + 32 + 10);
    expect(reservedTokens(reservedTokensRequest(), SHARED)).toBe(SHARE);
  });

  test("a prompt with images reserves the whole context until it is counted", () => {
    expect(reservedTokens(reservedTokensRequest(10, WITH_IMAGE), SHARED)).toBe(32_768);
  });
});

test("an unshared context is reserved up to the answer's limit", () => {
  expect(reservedTokens(reservedTokensRequest(), OWN)).toBe(4096);
  expect(neededTokens(reservedTokensRequest(4000), 500, OWN)).toBe(4096);
  expect(neededTokens(reservedTokensRequest(100), 500, OWN)).toBe(600);
});

const SPEC = { contextSize: 32_768, slots: 4, sharedContext: true };

/** Creates an engine with a fixed number of bytes per token, which records what it tokenizes. */
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
  test("is tokenized while others run, and reserves one share if it fits", async () => {
    const { engine } = engineOf(4);
    expect(await admissionTokens(engine, chat(20_000), true, never)).toBe(8192);
  });

  test("reserves its token count with an allowance for the template", async () => {
    const { engine } = engineOf(4);
    const tokens = await admissionTokens(engine, chat(60_000), true, never);
    expect(tokens).toBeGreaterThan(60_000 / 4 + 1024);
    expect(tokens).toBeLessThan(60_000 / 3 + 1024);
  });

  test("is not tokenized if nothing runs, because it is admitted anyway", async () => {
    const { engine, counted } = engineOf(4);
    expect(await admissionTokens(engine, chat(40_000), false, never)).toBe(32_768);
    expect(counted).toEqual([]);
  });

  test("is not tokenized if it is too long to run beside others", async () => {
    const { engine, counted } = engineOf(4);
    expect(await admissionTokens(engine, chat(300_000), true, never)).toBe(32_768);
    expect(counted).toEqual([]);
  });

  test("reserves one token per byte if it cannot be tokenized", async () => {
    const { engine } = engineOf(4);
    engine.tokenize = () => Promise.reject(new ServiceError("unsupported_feature", "No tokenizer."));
    expect(await admissionTokens(engine, chat(20_000), true, never)).toBeGreaterThan(20_000);
  });
});

test("a short prompt is not tokenized at admission", async () => {
  const { engine, counted } = engineOf(4);
  expect(await admissionTokens(engine, chat(100), true, never)).toBe(8192);
  expect(counted).toEqual([]);
});

test("a prompt for an unshared context is not tokenized at admission", async () => {
  const { counted } = engineOf(4);
  const engine = new FakeEngine({ ...SPEC, sharedContext: false });
  expect(await admissionTokens(engine, chat(40_000), true, never)).toBe(32_768);
  expect(counted).toEqual([]);
});

const CONTEXT = 1024;
const PROMPT_TOKENS = 40;
const timings = { promptMs: 1, completionMs: 2 };
const REQUEST: GenerationRequest = {
  input: { kind: "prompt", prompt: "Once" },
  stop: [],
  sampling: {},
  format: { type: "text" },
  cachePrompt: true,
};

const progress = (completionTokens: number): GenerationEvent => ({
  type: "answer-progress",
  usage: { promptTokens: PROMPT_TOKENS, completionTokens, cachedTokens: 3, reasoningTokens: 0 },
  timings,
});

/** Creates an engine whose answer has this many tokens, few of them with text. Records the longest answer. */
function engineWith(tokens: number): { engine: FakeEngine; reached: () => number } {
  const engine = new FakeEngine({ slots: 4, contextSize: CONTEXT, sharedContext: true });
  let reached = 0;
  engine.script = async function* (_request, signal) {
    yield { type: "start" };
    yield { type: "prompt-progress", processed: PROMPT_TOKENS, total: PROMPT_TOKENS };
    for (let count = 16; count <= tokens; count += 16) {
      signal.throwIfAborted();
      reached = count;
      yield { type: "text-delta", text: "x" };
      yield progress(count);
      await Promise.resolve();
    }
    yield DONE;
  };
  return { engine, reached: () => reached };
}

const queueOf = () => new AdmissionQueue({ slots: 4, contextTokens: CONTEXT, maxWaiting: 4 });

async function run(engine: FakeEngine, permit: Permit, maxTokens?: number): Promise<GenerationEvent[]> {
  const events: GenerationEvent[] = [];
  const request = { ...REQUEST, ...(maxTokens !== undefined && { maxTokens }) };
  await generateWithinContext(engine, permit, request, (event) => void events.push(event), never);
  return events;
}

describe("an answer in a shared context", () => {
  test("reserves more tokens as it grows, without events for its reader", async () => {
    const permit = await queueOf().acquire(never, { tokens: 256 });
    const events = await run(engineWith(800).engine, permit);
    expect(permit.tokens).toBeGreaterThanOrEqual(PROMPT_TOKENS + 800);
    expect(events.at(-1)).toEqual(DONE);
    expect(events.some(({ type }) => type === "answer-progress")).toBe(false);
  });

  test("ends with the reason length before it uses tokens reserved by others", async () => {
    const queue = queueOf();
    const permit = await queue.acquire(never, { tokens: 256 });
    await queue.acquire(never, { tokens: 500 });
    const { engine, reached } = engineWith(800);
    const events = await run(engine, permit);
    expect(PROMPT_TOKENS + reached()).toBeLessThanOrEqual(CONTEXT - 500);
    expect(PROMPT_TOKENS + reached()).toBeGreaterThan(CONTEXT - 500 - 64);
    expect(events.at(-1)).toEqual({ ...progress(reached()), type: "done", reason: "length" });
    expect(events.filter(({ type }) => type === "done")).toHaveLength(1);
    expect(engine.inFlight).toBe(0);
  });

  test("is not ended if it runs alone, even if it fills the context", async () => {
    const permit = await queueOf().acquire(never, { tokens: 256 });
    expect((await run(engineWith(CONTEXT - PROMPT_TOKENS).engine, permit)).at(-1)).toEqual(DONE);
  });

  test("reserves all its tokens at the beginning if its limit is small", async () => {
    const queue = queueOf();
    const permit = await queue.acquire(never, { tokens: PROMPT_TOKENS + 100 });
    await queue.acquire(never, { tokens: CONTEXT - PROMPT_TOKENS - 100 });
    expect((await run(engineWith(96).engine, permit, 100)).at(-1)).toEqual(DONE);
    expect(permit.tokens).toBe(PROMPT_TOKENS + 100);
  });

  test("is counted from its prompt again when it is generated again", async () => {
    const queue = queueOf();
    const permit = await queue.acquire(never, { tokens: 256 });
    const { engine } = engineWith(600);
    for (let tries = 0; tries < 3; tries += 1) expect((await run(engine, permit)).at(-1)).toEqual(DONE);
    expect(permit.tokens).toBeLessThan(PROMPT_TOKENS + 700);
  });

  test("releases the tokens that its prompt does not need", async () => {
    const queue = queueOf();
    const permit = await queue.acquire(never, { tokens: CONTEXT });
    const { engine } = engineWith(16);
    const next = queue.acquire(never, { tokens: 700 });
    await run(engine, permit);
    expect((await next).tokens).toBe(700);
    expect(permit.tokens).toBe(256);
  });
});

test("an answer whose client disconnects fails with the client's abort reason", async () => {
  const permit = await queueOf().acquire(never, { tokens: 256 });
  const { engine } = engineWith(0);
  engine.script = async function* (_request, signal) {
    yield { type: "start" };
    await aborted(signal);
  };
  const client = new AbortController();
  const events: GenerationEvent[] = [];
  const answer = generateWithinContext(
    engine,
    permit,
    REQUEST,
    (event) => void events.push(event),
    client.signal,
  );
  client.abort(new Error("gone"));
  await expect(answer).rejects.toThrow("gone");
  expect(events.some(({ type }) => type === "done")).toBe(false);
});
