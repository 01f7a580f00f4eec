import fs from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { gguf } from "@huggingface/gguf";
import type { Engine } from "../../src/engine/engine.ts";
import type { Sampling, TokenLogprob } from "../../src/engine/protocol/generation.ts";
import {
  chatRequest,
  collect,
  doneOf,
  engineSpec,
  generateText,
  NEVER,
  promptRequest,
  SHIPPED_MODEL,
  startEngine,
  temporaryFolder,
  textOf,
  writeModel,
} from "../support/engine-fixture.ts";
import { CONVERSATION, logprobsOf, shareOfRounding } from "../support/forced-text.ts";
import { tinyLlama, tokenId } from "../support/tiny-models.ts";
import { generated } from "../support/generated.ts";

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

async function chatTemplateOf(file: string): Promise<string> {
  const { metadata } = await gguf(file, { allowLocalFile: true });
  return String(Object.entries(metadata).find(([key]) => key === "tokenizer.chat_template")?.[1]);
}

/** Prompt with a long answer. */
const GREETING = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n";

const YES_OR_NO = { type: "object", properties: { answer: { enum: ["yes", "no"] } }, required: ["answer"] };

describe("an engine with the shipped model", () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await startEngine(engineSpec(SHIPPED_MODEL));
  });
  afterAll(() => engine.close());

  test("reports the model's properties", () => {
    expect(engine.info).toMatchObject({ contextSize: 512, hasChatTemplate: true, hasImageInput: false });
    expect(engine.info.vocabSize).toBeGreaterThan(256);
    expect(engine.info.embeddingSize).toBeGreaterThan(0);
    expect(engine.info.backendVersion).toMatch(/^b\d+/);
  });

  test("streams start, prefill progress, text and end in this order", async () => {
    const events = await collect(generated(engine, promptRequest("Hello world", { maxTokens: 5 }), NEVER));
    const types = events.map(({ type }) => type).filter((type, index, all) => type !== all[index - 1]);
    expect(types).toEqual(["start", "prompt-progress", "text-delta", "done"]);
    const { usage, timings } = doneOf(events);
    expect(usage.promptTokens).toBeGreaterThan(0);
    expect(usage.completionTokens).toBeLessThanOrEqual(5);
    expect(timings.promptMs + timings.completionMs).toBeGreaterThan(0);
  });

  test("generates the same text again with the cached prompt", async () => {
    const request = promptRequest("The cache is asked twice", { sampling: { temperature: 1, seed: 7 } });
    const first = await collect(generated(engine, request, NEVER));
    const second = await collect(generated(engine, request, NEVER));
    expect(textOf(second)).toBe(textOf(first));
    expect(doneOf(second).usage.cachedTokens).toBeGreaterThan(0);
    const uncached = await collect(generated(engine, { ...request, cachePrompt: false }, NEVER));
    expect(doneOf(uncached).usage.cachedTokens).toBe(0);
  });

  test("chooses a random seed for a request without one", async () => {
    // Nearly uniform sampling, so that two texts are equal only with the same seed.
    const sampling = { temperature: 100, topK: 0, topP: 1, minP: 0, ignoreEos: true };
    const request = promptRequest("Something new", { sampling, maxTokens: 20 });
    expect(await generateText(engine, request)).not.toBe(await generateText(engine, request));
  });

  test("generates one token for a limit of one", async () => {
    const request = promptRequest("Hello", { maxTokens: 1, sampling: { temperature: 0, ignoreEos: true } });
    expect(doneOf(await collect(generated(engine, request, NEVER)))).toMatchObject({
      reason: "length",
      usage: { completionTokens: 1 },
    });
  });

  test("without a limit generates until the context is full", async () => {
    const { maxTokens: _, ...request } = promptRequest("Hello", {
      sampling: { temperature: 0, ignoreEos: true },
    });
    const { reason, usage } = doneOf(await collect(generated(engine, request, NEVER)));
    expect(reason).toBe("length");
    expect(usage.promptTokens + usage.completionTokens).toBe(512);
  });

  test("reports the stop sequence and omits it from the text", async () => {
    const grammar = { type: "grammar", grammar: 'root ::= "one STOP two"' } as const;
    for (const request of [
      promptRequest("Count", { format: grammar, stop: ["HALT", "STOP"], maxTokens: 40 }),
      chatRequest("Count", { format: grammar, stop: ["HALT", "STOP"], maxTokens: 40 }),
    ]) {
      const events = await collect(generated(engine, request, NEVER));
      expect(textOf(events)).toBe("one ");
      expect(doneOf(events)).toMatchObject({ reason: "stop", stopSequence: "STOP" });
    }
  });

  test("reports no stop sequence when the model stopped by itself", async () => {
    const request = promptRequest("Answer", {
      format: { type: "grammar", grammar: 'root ::= "yes"' },
      stop: ["STOP"],
    });
    const done = doneOf(await collect(generated(engine, request, NEVER)));
    expect(done.reason).toBe("stop");
    expect(done.stopSequence).toBeUndefined();
  });

  test.each([
    ["a prompt", promptRequest("Q", { maxTokens: 400, format: { type: "json_schema", schema: YES_OR_NO } })],
    ["a chat", chatRequest("Q", { maxTokens: 400, format: { type: "json_schema", schema: YES_OR_NO } })],
  ])("keeps %s to a JSON schema", async (_, request) => {
    expect(JSON.parse(await generateText(engine, request))).toEqual({
      answer: expect.stringMatching(/^(yes|no)$/),
    });
  });

  test.each([
    ["a prompt", promptRequest("Q", { format: { type: "json" }, maxTokens: 100 })],
    ["a chat", chatRequest("Q", { format: { type: "json" }, maxTokens: 200 })],
  ])("begins %s that must be JSON with an object", async (_, request) => {
    expect(await generateText(engine, request)).toMatch(/^\s*\{/);
  });

  test.each([
    ["a prompt", promptRequest(GREETING, { logprobs: 3, maxTokens: 3 })],
    ["a chat", chatRequest("Hello", { logprobs: 3, maxTokens: 3 })],
  ])("reports log-probabilities of %s", async (_, request) => {
    const events = await collect(generated(engine, request, NEVER));
    const logprobs = events.flatMap((event) => (event.type === "text-delta" ? (event.logprobs ?? []) : []));
    expect(logprobs.length).toBeGreaterThan(0);
    for (const { token, logprob, top } of logprobs) {
      expect(token).not.toBe("");
      expect(logprob).toBeLessThanOrEqual(0);
      expect(top).toHaveLength(3);
    }
  });

  test("reports only the chosen token without alternatives", async () => {
    const request = chatRequest("Hello", { logprobs: 0, maxTokens: 2 });
    const events = await collect(generated(engine, request, NEVER));
    const logprobs = events.flatMap((event) => (event.type === "text-delta" ? (event.logprobs ?? []) : []));
    expect(logprobs.map(({ top }) => top)).toEqual(logprobs.map(() => []));
    expect(logprobs.length).toBeGreaterThan(0);
  });

  test("applies a logit bias", async () => {
    const plain = await collect(
      generated(engine, promptRequest("Hello", { logprobs: 1, maxTokens: 1 }), NEVER),
    );
    const biased = promptRequest("Hello", {
      sampling: { temperature: 0, logitBias: [{ token: 100, bias: 100 }] },
    });
    const text = await generateText(engine, { ...biased, maxTokens: 2 });
    expect(text).not.toBe(textOf(plain));
    expect(text.slice(0, text.length / 2)).toBe(text.slice(text.length / 2)); // the same token twice
  });

  test("accepts every sampler at the ends of its range", async () => {
    const sampling = {
      temperature: 2,
      topP: 1,
      topK: 0,
      minP: 0,
      typicalP: 1,
      repeatPenalty: 1.3,
      repeatLastN: -1,
      presencePenalty: 2,
      frequencyPenalty: -2,
      mirostat: 2,
      mirostatTau: 5,
      mirostatEta: 0.1,
      seed: 0xffff_ffff,
    };
    expect(doneOf(await collect(generated(engine, promptRequest("Hello", { sampling }), NEVER))).type).toBe(
      "done",
    );
  });

  test("separates reasoning from text", async () => {
    const grammar = { type: "grammar", grammar: 'root ::= "because</think>yes"' } as const;
    const request = chatRequest("Why?", { format: grammar, maxTokens: 40 }, { thinking: true });
    const events = await collect(generated(engine, request, NEVER));
    const reasoning = events.map((event) => (event.type === "reasoning-delta" ? event.text : "")).join("");
    expect({ reasoning: reasoning.trim(), text: textOf(events).trim() }).toEqual({
      reasoning: "because",
      text: "yes",
    });
    expect(doneOf(events).usage.reasoningTokens).toBeGreaterThan(0);
  });

  test("continues an assistant message that the chat ends with", async () => {
    const user = { role: "user", content: [{ type: "text", text: "Hello" }] } as const;
    const assistant = { role: "assistant", content: [{ type: "text", text: "The answer is" }] } as const;
    const asked = chatRequest("", {}, { messages: [{ ...user, content: [...user.content] }] });
    const begun = chatRequest(
      "",
      {},
      {
        thinking: true,
        messages: [
          { ...user, content: [...user.content] },
          { ...assistant, content: [...assistant.content] },
        ],
      },
    );
    const [short, long] = [
      doneOf(await collect(generated(engine, asked, NEVER))).usage.promptTokens,
      doneOf(await collect(generated(engine, begun, NEVER))).usage.promptTokens,
    ];
    expect(long).toBeGreaterThan(short);
    expect(long).toBeLessThan(short + 10); // no second turn has been opened behind it
  });

  test("treats half a surrogate pair as a replacement character", async () => {
    await expect(collect(generated(engine, promptRequest("half \ud83d pair"), NEVER))).resolves.toBeDefined();
  });

  test("a prompt longer than the context is refused with both numbers", async () => {
    const request = promptRequest("hello ".repeat(600));
    await expect(collect(generated(engine, request, NEVER))).rejects.toMatchObject({
      code: "context_length_exceeded",
      message: expect.stringMatching(/\d{3,} tokens.* 512 tokens/),
    });
  });

  test("an invalid grammar fails only its request", async () => {
    const format = { type: "grammar", grammar: 'root ::= "yes" | nowhere' } as const;
    await expect(collect(generated(engine, chatRequest("Hi", { format }), NEVER))).rejects.toMatchObject({
      code: "invalid_parameter",
    });
    await expect(generateText(engine, promptRequest("Hello"))).resolves.toBeDefined();
  });

  test("an image is refused by a model without a projector", async () => {
    const request = chatRequest([{ type: "image", data: new Uint8Array([1, 2, 3]) }]);
    await expect(collect(generated(engine, request, NEVER))).rejects.toMatchObject({
      code: "unsupported_feature",
    });
  });

  test("generates four different texts concurrently", async () => {
    const texts = CONVERSATION.slice(0, 4).map(({ answer }) => answer);
    const alone: TokenLogprob[][] = [];
    for (const text of texts) alone.push(await logprobsOf(engine, GREETING, text));
    const together = await Promise.all(texts.map((text) => logprobsOf(engine, GREETING, text)));
    for (const [index, logprobs] of together.entries()) {
      expect(logprobs.length).toBeGreaterThan(5);
      expect(shareOfRounding(logprobs, alone[index]!)).toBeLessThan(1);
    }
  });

  test("refuses a call beyond its slots instead of never answering it", async () => {
    const endless = promptRequest("On", { sampling: { ignoreEos: true }, maxTokens: 400 });
    const over = new AbortController();
    const running = Array.from({ length: 4 }, () => collect(generated(engine, endless, over.signal)));
    await expect(collect(generated(engine, endless, NEVER))).rejects.toMatchObject({
      code: "internal_error",
    });
    await expect(engine.embed("hello", NEVER)).rejects.toMatchObject({ code: "internal_error" });
    const ended = Promise.allSettled(running);
    over.abort(new Error("over"));
    for (const each of await ended)
      expect(each).toMatchObject({ status: "rejected", reason: { message: "over" } });
  });
});

describe("tool calls", () => {
  let engine: Engine;
  let eager: Sampling;
  beforeAll(async () => {
    const words = ["<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>"];
    const model = tinyLlama({ words });
    engine = await startEngine(
      engineSpec(writeModel(folder, "tools", model), {
        slots: 1,
        chatTemplate: await chatTemplateOf(SHIPPED_MODEL),
      }),
    );
    // The model has random weights: a bias makes it begin a call, and the grammar of the tools does the rest. The
    // penalty on the last token makes "<tool_call>" and the newline behind it alternate.
    const push = (token: string, bias: number): { token: number; bias: number } => ({
      token: tokenId(model, token),
      bias,
    });
    eager = {
      temperature: 0,
      repeatLastN: 1,
      presencePenalty: 2,
      frequencyPenalty: 2,
      logitBias: [push("<tool_call>", 20), push("<0x0A>", 19)],
    };
  });
  afterAll(() => engine.close());

  const weather = {
    name: "weather",
    description: "The weather in a city",
    parameters: {
      type: "object",
      properties: { city: { enum: ["Rome", "Oslo"] } },
      required: ["city"],
      additionalProperties: false,
    },
  };
  const clock = {
    name: "clock",
    parameters: { type: "object", properties: {}, additionalProperties: false },
  };

  test("stream a start with id and name, then the arguments", async () => {
    const request = chatRequest("Rome?", { maxTokens: 120, sampling: eager }, { tools: [weather] });
    const events = await collect(generated(engine, request, NEVER));
    const start = events.find((event) => event.type === "tool-call-start");
    expect(start).toMatchObject({ index: 0, name: "weather", id: expect.stringMatching(/./) });
    const pieces = events.flatMap((event) =>
      event.type === "tool-call-delta" && event.index === 0 ? [event.arguments] : [],
    );
    expect(JSON.parse(pieces.join(""))).toEqual({ city: expect.stringMatching(/Rome|Oslo/) });
    expect(textOf(events).trim()).toBe("");
  });

  test("use the tool that is chosen by name", async () => {
    const input = { tools: [weather, clock], toolChoice: { name: "clock" } };
    const request = chatRequest("Time?", { maxTokens: 120, sampling: eager }, input);
    const events = await collect(generated(engine, request, NEVER));
    const names = events.flatMap((event) => (event.type === "tool-call-start" ? [event.name] : []));
    expect(new Set(names)).toEqual(new Set(["clock"]));
  });
});

describe("text that is not UTF-8", () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await startEngine(engineSpec(writeModel(folder, "bytes", tinyLlama())));
  });
  afterAll(() => engine.close());

  /** Byte that is invalid in UTF-8. */
  const BYTE_FF = tokenId(tinyLlama(), "<0xFF>");

  test("is replaced without losing the following text", async () => {
    const sampling = { temperature: 0, ignoreEos: true, logitBias: [{ token: BYTE_FF, bias: 100 }] };
    const events = await collect(
      generated(engine, promptRequest("bytes", { sampling, maxTokens: 6 }), NEVER),
    );
    expect(textOf(events)).toMatch(/^\uFFFD{1,6}$/);
    expect(doneOf(events)).toMatchObject({ reason: "length" });
    expect(await generateText(engine, promptRequest("bytes"))).toBeDefined();
  });
});
