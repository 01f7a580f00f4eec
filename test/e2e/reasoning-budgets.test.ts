import { rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { temporaryFolder, writeModel } from "../support/engine-fixture.ts";
import { postJson } from "../support/post-json.ts";
import { removeModel, sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { CHATML_WORDS, tinyLlama, tokenId } from "../support/tiny-models.ts";

const MODEL = "tiny-thinker";
/** Template whose prompt opens the reasoning, as those of Qwen3 and DeepSeek R1. */
const TEMPLATE =
  "{%- for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor -%}" +
  "{%- if add_generation_prompt %}<|im_start|>assistant\n" +
  "{%- if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n" +
  "{%- else %}<think>\n{%- endif %}{% endif -%}";

describe("a model with endless reasoning", () => {
  let daemon: TestDaemon;
  const folder = temporaryFolder();
  const model = tinyLlama({ chatTemplate: TEMPLATE, words: [...CHATML_WORDS, "<think>", "</think>"] });
  const file = writeModel(folder, "thinker", model);
  /** Bias that makes every unconstrained token this letter. */
  const always = { logit_bias: { [tokenId(model, "x")]: 100 } };
  beforeAll(async () => {
    daemon = await sharedDaemon();
    await post("/api/models/load", { alias: MODEL, path: file, context_size: 256 });
  });
  afterAll(async () => {
    await removeModel(daemon, MODEL);
    rmSync(folder, { recursive: true });
  });

  async function post(path: string, body: object): Promise<unknown> {
    const answer = await postJson(daemon.url + path, { model: MODEL, ...body });
    return JSON.parse(await answer.text());
  }

  const messages = [{ role: "user", content: "hi" }];

  test("answers after budget_tokens of the Anthropic API", async () => {
    const thinking = { type: "enabled", budget_tokens: 6 };
    expect(await post("/v1/messages", { messages, max_tokens: 20, thinking, ...always })).toMatchObject({
      content: [
        { type: "thinking", thinking: "xxxxxx" },
        { type: "text", text: expect.stringMatching(/^x+$/) },
      ],
    });
  });

  test.for([
    ["reasoning_effort", { reasoning_effort: "low" }, 16],
    ["thinking_budget_tokens", { thinking_budget_tokens: 5 }, 5],
    ["thinking_token_budget", { thinking_token_budget: 4 }, 4],
    ["a budget beside an effort", { reasoning_effort: "high", thinking_budget_tokens: 3 }, 3],
  ] as const)("answers after %s of /v1/chat/completions", async ([, fields, tokens]) => {
    expect(
      await post("/v1/chat/completions", { messages, max_tokens: 20, ...fields, ...always }),
    ).toMatchObject({
      choices: [
        {
          message: { reasoning_content: "x".repeat(tokens), content: expect.stringMatching(/^x+$/) },
        },
      ],
    });
  });

  test("answers after reasoning.effort of /v1/responses", async () => {
    const fields = { input: "hi", max_output_tokens: 20, reasoning: { effort: "medium" }, ...always };
    expect(await post("/v1/responses", fields)).toMatchObject({
      output: [
        { type: "reasoning" },
        { type: "message", content: [{ text: expect.stringMatching(/^x+$/) }] },
      ],
    });
  });

  test("answers after a level of Ollama's think, in chat and generate", async () => {
    const fields = { think: "low", stream: false, options: { num_predict: 20, ...always } };
    const expected = { thinking: "x".repeat(16) };
    const chat = await post("/ollama/api/chat", { messages, ...fields });
    expect(chat).toMatchObject({ message: { ...expected, content: expect.stringMatching(/^x+$/) } });
    const text = await post("/ollama/api/generate", { prompt: "hi", ...fields });
    expect(text).toMatchObject({ ...expected, response: expect.stringMatching(/^x+$/) });
  });

  test("answers after thinking_budget_tokens of the native API", async () => {
    const fields = { messages, max_tokens: 20, thinking_budget_tokens: 2, ...always };
    expect(await post("/api/chat", fields)).toMatchObject({
      message: { thinking: "xx", content: expect.stringMatching(/^x+$/) },
    });
  });

  test("continues reasoning without a budget", async () => {
    expect(
      await post("/v1/messages", {
        messages,
        max_tokens: 20,
        thinking: { type: "enabled" },
        ...always,
      }),
    ).toMatchObject({ content: [{ type: "thinking" }] });
  });
});
