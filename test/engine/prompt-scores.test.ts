import { afterAll, beforeAll, expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { TokenLogprob } from "../../src/engine/protocol/generation.ts";
import { scorePrompt } from "../../src/inference/score-prompt.ts";
import { engineSpec, NEVER, SHIPPED_MODEL, startEngine } from "../support/engine-fixture.ts";

let engine: Engine;

beforeAll(async () => {
  engine = await startEngine(engineSpec(SHIPPED_MODEL));
});
afterAll(() => engine.close());

/** Generated tokens after a prompt with their log-probabilities. */
async function generated(prompt: string, maxTokens: number): Promise<TokenLogprob[]> {
  const tokens: TokenLogprob[] = [];
  await engine.generate(
    {
      input: { kind: "prompt", prompt },
      maxTokens,
      stop: [],
      sampling: { temperature: 0, ignoreEos: true },
      format: { type: "text" },
      logprobs: 3,
      cachePrompt: true,
    },
    (event) => {
      if (event.type === "text-delta") tokens.push(...(event.logprobs ?? []));
    },
    NEVER,
  );
  return tokens;
}

test("the tokens of a prompt have the log-probabilities that generating them reports", async () => {
  const prompt = "How do I load";
  const tokens = await generated(prompt, 24);
  const text = prompt + tokens.map(({ token }) => token).join("");
  const { shown } = await scorePrompt(engine, text, 3, NEVER);
  const answer = shown.slice(-tokens.length);
  expect(answer.map(({ id }) => id)).toEqual(tokens.map(({ id }) => id));
  for (const [at, { score }] of answer.entries()) {
    expect(score?.logprob).toBeCloseTo(tokens[at]!.logprob, 4);
    expect(score?.top.map(({ id }) => id)).toEqual(tokens[at]!.top.map(({ id }) => id));
  }
});

test("special tokens and characters of several tokens are scored at their positions", async () => {
  const { shown } = await scorePrompt(engine, "Hé 🙂 <|im_start|>How<|im_end|> I", 1, NEVER);
  const decoder = new TextDecoder();
  expect(shown.map(({ bytes, score }) => [decoder.decode(bytes), score !== undefined])).toEqual([
    // The first token has no context.
    ["H", false],
    ["é", true],
    [" ", true],
    // llama.cpp reports nothing before a character is complete.
    ["\uFFFD", false],
    ["\uFFFD", false],
    ["\uFFFD", false],
    ["\uFFFD", true],
    [" ", true],
    ["<|im_start|>", true],
    ["How", true],
    ["<|im_end|>", true],
    [" ", true],
    ["I", true],
  ]);
  expect(shown.every(({ id, score }) => score === undefined || score.id === id)).toBe(true);
});

test("a prompt that is longer than the context is refused", async () => {
  await expect(scorePrompt(engine, "How ".repeat(600), 1, NEVER)).rejects.toMatchObject({
    code: "context_length_exceeded",
  });
});

test("scoring ends when its request is cancelled", async () => {
  const stop = new AbortController();
  const scoring = scorePrompt(engine, "How ".repeat(200), 1, stop.signal);
  stop.abort(new Error("enough"));
  await expect(scoring).rejects.toThrow("enough");
});
