import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rmSync } from "node:fs";
import { temporaryFolder, writeModel } from "../support/engine-fixture.ts";
import { removeModel, sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { tinyLlama } from "../support/tiny-models.ts";

interface Completion {
  readonly usage: {
    readonly completion_tokens: number;
    readonly prompt_tokens_details: { readonly cached_tokens: number };
  };
  readonly choices: readonly [
    { readonly finish_reason: string; readonly logprobs: { readonly token_logprobs: readonly number[] } },
  ];
}

const MODEL = "tiny-with-settings";
const END_OF_TEXT = 2;
const PROMPT = "once upon a time there was and she was ".repeat(4);

describe("a model with load settings", () => {
  let daemon: TestDaemon;
  const folder = temporaryFolder();
  // Heads of 64 dimensions, which quantized keys need for a context shift.
  const file = writeModel(folder, "tiny", tinyLlama({ embedding: 128, heads: 2, kvHeads: 1, context: 256 }));
  beforeAll(async () => {
    daemon = await sharedDaemon();
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  async function call<Answer>(method: string, path: string, body?: object): Promise<Answer> {
    const answer = await fetch(daemon.url + path, {
      method,
      headers: { "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
    return JSON.parse(await answer.text());
  }

  /** Loads the model with settings, runs requests, and unloads it. */
  async function loaded<Result>(settings: object, ask: () => Promise<Result>): Promise<Result> {
    const answer = await call("POST", "/api/models/load", { alias: MODEL, path: file, ...settings });
    expect(answer).toMatchObject({ status: "loaded" });
    try {
      return await ask();
    } finally {
      await removeModel(daemon, MODEL);
    }
  }

  const complete = async (fields: object): Promise<Completion> =>
    await call("POST", "/v1/completions", {
      model: MODEL,
      prompt: PROMPT,
      temperature: 0,
      logit_bias: { [END_OF_TEXT]: -100 },
      logprobs: 1,
      ...fields,
    });
  const firstLogprob = async (): Promise<number> =>
    (await complete({ max_tokens: 1 })).choices[0].logprobs.token_logprobs[0] ?? Number.NaN;
  const embed = async (): Promise<{ readonly embeddings: readonly (readonly number[])[] }> =>
    await call("POST", "/api/embeddings", { model: MODEL, input: "once upon a time" });

  test("applies and reports them", async () => {
    const plain = await loaded({ context_size: 256 }, async () => {
      const answer = await complete({ max_tokens: 400 });
      expect(answer.choices[0].finish_reason).toBe("length");
      expect(answer.usage.completion_tokens).toBeLessThan(256);
      expect(await complete({ n_cache_reuse: 8 })).toMatchObject({
        error: { code: "invalid_parameter", param: "n_cache_reuse" },
      });
      return { logprob: await firstLogprob(), vector: (await embed()).embeddings[0]! };
    });

    const quantized = { cache_type_k: "q8_0", cache_type_v: "q8_0", cache_reuse: 32 };
    const settings = { ...quantized, context_shift: true, num_keep: 4, pooling: "last", batch_size: 64 };
    await loaded({ context_size: 256, ...settings }, async () => {
      expect(await call("GET", `/api/models/${MODEL}`)).toMatchObject({ load_settings: settings });
      const logprob = await firstLogprob();
      expect(logprob).not.toBe(plain.logprob);
      expect(logprob).toBeCloseTo(plain.logprob, 0);
      const answer = await complete({ max_tokens: 400 });
      expect(answer.usage.completion_tokens).toBe(400);
      // Dropped tokens change the answer: one that keeps its prompt continues differently.
      expect((await complete({ max_tokens: 400, n_keep: -1 })).choices[0]).not.toEqual(answer.choices[0]);
      // Also a part of the prompt behind a changed beginning, unless the request forbids that.
      const reusedOf = async (prompt: string, fields: object): Promise<number> =>
        (await complete({ prompt, id_slot: 0, max_tokens: 1, ...fields })).usage.prompt_tokens_details
          .cached_tokens;
      await reusedOf(`a cat and ${PROMPT}`, {});
      expect(await reusedOf(PROMPT, {})).toBeGreaterThan(20);
      await reusedOf(`a cat and ${PROMPT}`, { n_cache_reuse: 0 });
      expect(await reusedOf(PROMPT, { n_cache_reuse: 0 })).toBeLessThan(8);
      const [vector] = (await embed()).embeddings;
      expect(vector).toHaveLength(plain.vector.length);
      expect(vector?.[0]).not.toBeCloseTo(plain.vector[0]!, 3);
    });

    const stretched = { rope_scaling: "yarn", rope_freq_scale: 0.25, yarn_beta_fast: 16 };
    await loaded({ context_size: 1024, ...stretched }, async () => {
      expect(await call("GET", `/api/models/${MODEL}`)).toMatchObject({
        context_size: 1024,
        load_settings: stretched,
      });
      expect(Math.abs((await firstLogprob()) - plain.logprob)).toBeGreaterThan(1e-4);
    });
  });

  test.for([
    [{ cache_type_k: "f8" }, "cache_type_k"],
    [{ cache_type_v: "q8_0", flash_attention: "false" }, "cache_type_v"],
    [{ rope_freq_scale: 0 }, "rope_freq_scale"],
    [{ rope_scaling: "linear", yarn_ext_factor: 1 }, "yarn_ext_factor"],
    [{ num_keep: -2 }, "num_keep"],
    [{ batch_size: 1e6 }, "batch_size"],
    [{ pooling: "rank" }, "pooling"],
  ] as const)("is refused %j", async ([settings, param]) => {
    const answer = await call("POST", "/api/models/load", { alias: MODEL, path: file, ...settings });
    expect(answer).toMatchObject({ error: { code: "invalid_parameter", type: "invalid_request" } });
    expect(JSON.stringify(answer)).toContain(`${param}: `);
    expect(await call("GET", `/api/models/${MODEL}`)).toMatchObject({ error: { code: "model_not_found" } });
  });
});
