import { describe, expect, test } from "vitest";
import type { GenerationEvent, GenerationRequest } from "../../../src/engine/protocol/generation.ts";
import { AdmissionQueue, type Permit } from "../../../src/inference/admission-queue.ts";
import { generateInRoom } from "../../../src/inference/generate-in-room.ts";
import { aborted, DONE, FakeEngine } from "../../support/fake-engine.ts";
import { never } from "./inference-setup.ts";

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

/** An engine whose answer has so many tokens, few of which have text. It notes the most that it has got to. */
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
  await generateInRoom(engine, permit, request, (event) => void events.push(event), never);
  return events;
}

describe("an answer in a shared context", () => {
  test("takes more of it as it grows, and its reader sees nothing of that", async () => {
    const permit = await queueOf().acquire(never, { tokens: 256 });
    const events = await run(engineWith(800).engine, permit);
    expect(permit.tokens).toBeGreaterThanOrEqual(PROMPT_TOKENS + 800);
    expect(events.at(-1)).toEqual(DONE);
    expect(events.some(({ type }) => type === "answer-progress")).toBe(false);
  });

  test("ends by its length before it needs what others hold, with what was generated", async () => {
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

  test("that is alone is never ended, however much of the context it takes", async () => {
    const permit = await queueOf().acquire(never, { tokens: 256 });
    expect((await run(engineWith(CONTEXT - PROMPT_TOKENS).engine, permit)).at(-1)).toEqual(DONE);
  });

  test("has all it needs from the beginning if its limit is small", async () => {
    const queue = queueOf();
    const permit = await queue.acquire(never, { tokens: PROMPT_TOKENS + 100 });
    await queue.acquire(never, { tokens: CONTEXT - PROMPT_TOKENS - 100 });
    expect((await run(engineWith(96).engine, permit, 100)).at(-1)).toEqual(DONE);
    expect(permit.tokens).toBe(PROMPT_TOKENS + 100);
  });

  test("counts from its prompt again when it is generated again", async () => {
    const queue = queueOf();
    const permit = await queue.acquire(never, { tokens: 256 });
    const { engine } = engineWith(600);
    for (let tries = 0; tries < 3; tries += 1) expect((await run(engine, permit)).at(-1)).toEqual(DONE);
    expect(permit.tokens).toBeLessThan(PROMPT_TOKENS + 700);
  });

  test("gives back what its prompt turns out not to need", async () => {
    const queue = queueOf();
    const permit = await queue.acquire(never, { tokens: CONTEXT });
    const { engine } = engineWith(16);
    const next = queue.acquire(never, { tokens: 700 });
    await run(engine, permit);
    expect((await next).tokens).toBe(700);
    expect(permit.tokens).toBe(256);
  });
});

test("an answer whose client leaves fails with the client's reason", async () => {
  const permit = await queueOf().acquire(never, { tokens: 256 });
  const { engine } = engineWith(0);
  engine.script = async function* (_request, signal) {
    yield { type: "start" };
    await aborted(signal);
  };
  const client = new AbortController();
  const events: GenerationEvent[] = [];
  const answer = generateInRoom(engine, permit, REQUEST, (event) => void events.push(event), client.signal);
  client.abort(new Error("gone"));
  await expect(answer).rejects.toThrow("gone");
  expect(events.some(({ type }) => type === "done")).toBe(false);
});
