import fs from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { TokenLogprob } from "../../src/engine/protocol/generation.ts";
import type { TokenIds, TokenizeOptions } from "../../src/engine/protocol/calls.ts";
import {
  collect,
  doneOf,
  engineSpec,
  generateText,
  NEVER,
  promptRequest,
  SHIPPED_MODEL,
  startEngine,
  startStockEngine,
  temporaryFolder,
  writeModel,
} from "../support/engine-fixture.ts";
import { CONVERSATION, logprobsOf, shareOfRounding } from "../support/forced-text.ts";
import { tinyBert, tinyLlama } from "../support/tiny-models.ts";
import { generated } from "../support/generated.ts";

const PLAIN: TokenizeOptions = { addSpecial: false, parseSpecial: false };

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

async function textOf(engine: Engine, tokens: TokenIds): Promise<string> {
  const { bytes } = await engine.pieces(tokens, NEVER);
  return new TextDecoder().decode(bytes);
}

async function piecesOf(engine: Engine, tokens: TokenIds): Promise<string[]> {
  const { bytes, ends } = await engine.pieces(tokens, NEVER);
  return Array.from(ends, (end, at) =>
    Buffer.from(bytes.subarray(ends[at - 1] ?? 0, end)).toString("latin1"),
  );
}

const TEXTS = [
  "Hello world",
  "  two blanks before, and a line\nbreak\tand a tab",
  "Grüße, 你好, שלום",
  "👩‍👩‍👧‍👦 and 🏳️‍🌈",
  "\u0000 nothing",
  "",
];

describe.each([1, 2])("the shipped model's vocabulary (SentencePiece) on %i threads", (threads) => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await startEngine(engineSpec(SHIPPED_MODEL, { threads, contextSize: 1024, slots: 2 }));
  });
  afterAll(() => engine.close());

  test.each(TEXTS)("round-trips %j", async (text) => {
    const tokens = await engine.tokenize(text, PLAIN, NEVER);
    expect((await textOf(engine, tokens)).replace(/^ /, "")).toBe(text.replace(/^ /, ""));
  });

  test("counts the tokens of a prompt", async () => {
    for (const text of TEXTS.filter((candidate) => candidate !== "")) {
      const tokens = await engine.tokenize(text, { addSpecial: true, parseSpecial: true }, NEVER);
      const { usage } = doneOf(
        await collect(generated(engine, promptRequest(text, { maxTokens: 1 }), NEVER)),
      );
      expect(tokens).toHaveLength(usage.promptTokens);
    }
  });

  test("parses special tokens only when requested", async () => {
    const asText = await engine.tokenize("<|im_end|>", PLAIN, NEVER);
    const asToken = await engine.tokenize("<|im_end|>", { ...PLAIN, parseSpecial: true }, NEVER);
    expect(asToken).toHaveLength(1);
    expect(asText.length).toBeGreaterThan(1);
    expect(await textOf(engine, asToken)).toBe("<|im_end|>");
  });

  test("encodes a character without a token as bytes", async () => {
    const tokens = await engine.tokenize("𓂀", PLAIN, NEVER);
    expect((await piecesOf(engine, tokens)).slice(-4)).toEqual(["\xf0", "\x93", "\x82", "\x80"]);
  });

  test("tokenizes 680 KB and answers other calls meanwhile", async () => {
    const text = "A sentence with some words in it. ".repeat(20_000);
    const [long, short] = await Promise.all([
      engine.tokenize(text, PLAIN, NEVER),
      engine.tokenize("short", PLAIN, NEVER),
    ]);
    expect(short.length).toBeGreaterThan(0);
    expect((await textOf(engine, long)).trim()).toBe(text.trim());
  });

  test("works during generations without changing them", async () => {
    const text = CONVERSATION[1]!.answer;
    const write = (): Promise<TokenLogprob[]> => logprobsOf(engine, "Once upon a time", text);
    const alone = await write();
    const over = new AbortController();
    const running = Promise.all([write(), write()]).finally(() => over.abort());
    let calls = 0;
    const expected = await engine.tokenize("beside the others", PLAIN, NEVER);
    while (!over.signal.aborted) {
      expect(await engine.tokenize("beside the others", PLAIN, NEVER)).toEqual(expected);
      calls += 1;
    }
    expect(calls).toBeGreaterThan(0);
    for (const logprobs of await running) expect(shareOfRounding(logprobs, alone)).toBeLessThan(1);
  });

  test("continues with the next call when a queued one is cancelled", async () => {
    const client = new AbortController();
    const text = "A sentence with some words in it. ".repeat(2000);
    const running = collect(generated(engine, promptRequest("Hello", { maxTokens: 20 }), NEVER));
    const first = engine.tokenize(text, PLAIN, NEVER);
    const left = [1, 2, 3].map(() => engine.tokenize(text, PLAIN, client.signal));
    client.abort(new Error("left"));
    for (const each of await Promise.allSettled(left)) expect(each.status).toBe("rejected");
    await first;
    expect(doneOf(await running).usage.completionTokens).toBeGreaterThan(0);
    expect(engine.alive).toBe(true);
  });

  test("refuses unknown token ids and too long texts", async () => {
    const { vocabSize } = engine.info;
    for (const token of [-1, vocabSize]) {
      await expect(engine.pieces(Int32Array.of(0, token), NEVER)).rejects.toMatchObject({
        code: "invalid_parameter",
        param: "tokens",
      });
    }
    await expect(engine.tokenize("a".repeat(1024 * 1024 + 1), PLAIN, NEVER)).rejects.toMatchObject({
      code: "invalid_parameter",
      param: "content",
    });
  });
});

test("the vocabulary of an embedding model (WordPiece) is supported", async () => {
  const file = writeModel(folder, "bert", tinyBert({ context: 128 }));
  const engine = await startEngine(engineSpec(file, { purpose: "embed", contextSize: 128 }));
  try {
    const plain = await engine.tokenize("hello world", PLAIN, NEVER);
    const whole = await engine.tokenize("hello world", { ...PLAIN, addSpecial: true }, NEVER);
    expect(plain).toHaveLength(2);
    expect(whole.slice(1, -1)).toEqual(plain);
    expect(whole).toHaveLength((await engine.embed("hello world", NEVER)).tokens);
    expect((await textOf(engine, plain)).trim()).toBe("hello world");
  } finally {
    await engine.close();
  }
});

test("the stock engine refuses tokenizer calls and continues to serve", async () => {
  const engine = await startStockEngine(engineSpec(writeModel(folder, "llama", tinyLlama())));
  try {
    await expect(engine.tokenize("hello", PLAIN, NEVER)).rejects.toMatchObject({
      code: "unsupported_feature",
    });
    await expect(engine.pieces(Int32Array.of(1), NEVER)).rejects.toMatchObject({
      code: "unsupported_feature",
    });
    expect(await generateText(engine, promptRequest("hello"))).toEqual(expect.any(String));
  } finally {
    await engine.close();
  }
});
