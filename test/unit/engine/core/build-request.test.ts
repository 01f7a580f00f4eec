import { describe, expect, test } from "vitest";
import { buildCompletionCall, toRequestJson } from "../../../../src/engine/core/build-request.ts";
import type { GenerationRequest } from "../../../../src/engine/protocol/generation.ts";
import { chatRequest, promptRequest } from "../../../support/engine-fixture.ts";

const context = {
  mediaMarker: "<media>",
  contextSize: 4096,
  sharedContext: false,
  mustDisableReasoning: true,
  guessTokens: 0,
  adapterScales: [],
};

function bodyOf(request: GenerationRequest): Record<string, unknown> {
  return { ...buildCompletionCall(request, context).body };
}

/** Draft tokens that a request sends to our kernels, for a model that was loaded with this default. */
function guessesOf(guessTokens: number, sampling: GenerationRequest["sampling"] = {}): unknown {
  const request = promptRequest("x", { sampling });
  return buildCompletionCall(request, { ...context, guessTokens }).body["sse_ping_interval"];
}

describe("a request to llama.cpp's server", () => {
  test("encodes draft tokens, slot and request number for our kernels in one field", () => {
    const request = promptRequest("x", { slot: 2, sampling: { guessTokens: 5 } });
    expect(bodyOf(request)).toMatchObject({ sse_ping_interval: 3 * 256 + 5 });
    const { body } = buildCompletionCall(request, { ...context, number: 7 });
    expect(body).toMatchObject({ sse_ping_interval: 7 * 65_536 + 3 * 256 + 5 });
  });

  test("disables drafts if log probabilities are requested, which llama.cpp does not report for drafted tokens", () => {
    const request = promptRequest("x", { logprobs: 2, sampling: { guessTokens: 5 } });
    expect(bodyOf(request)).toMatchObject({ sse_ping_interval: 0 });
  });

  test("names sampling settings as llama.cpp's server does, and omits absent ones", () => {
    const sampling = {
      temperature: 0.5,
      topP: 0.9,
      topK: 0,
      minP: 0.1,
      typicalP: 0.8,
      topNSigma: 2,
      dryMultiplier: 0.8,
      drySequenceBreakers: ["\n"],
      xtcProbability: 0.5,
      samplers: ["top_k" as const, "dry" as const],
      maxPredictMs: 100,
      repeatPenalty: 1.1,
      repeatLastN: 32,
      presencePenalty: 0.1,
      frequencyPenalty: 0.2,
      mirostat: 1,
      mirostatTau: 4,
      mirostatEta: 0.2,
      seed: 5,
      logitBias: [{ token: 7, bias: -3 }],
      ignoreEos: true,
    };
    expect(bodyOf(promptRequest("x", { sampling }))).toMatchObject({
      temperature: 0.5,
      top_p: 0.9,
      top_k: 0,
      min_p: 0.1,
      typical_p: 0.8,
      top_n_sigma: 2,
      dry_multiplier: 0.8,
      dry_sequence_breakers: ["\n"],
      xtc_probability: 0.5,
      samplers: ["top_k", "dry"],
      t_max_predict_ms: 100,
      repeat_penalty: 1.1,
      repeat_last_n: 32,
      presence_penalty: 0.1,
      frequency_penalty: 0.2,
      mirostat: 1,
      mirostat_tau: 4,
      mirostat_eta: 0.2,
      seed: 5,
      logit_bias: [[7, -3]],
      ignore_eos: true,
    });
    expect(bodyOf(promptRequest("x", { sampling: {} }))).not.toHaveProperty("temperature");
  });

  test("omits fields that are not in our schema", () => {
    const request = { ...promptRequest("x"), n_predict: 5, sampling: { temperature: 1, n_ctx: 5 } };
    const body = bodyOf(request);
    expect(body).not.toHaveProperty("n_predict");
    expect(body).not.toHaveProperty("n_ctx");
  });

  test("has a random seed if the request has none", () => {
    const seeds = [1, 2, 3].map(() => bodyOf(promptRequest("x", { sampling: {} }))["seed"]);
    expect(new Set(seeds).size).toBe(3);
    for (const seed of seeds) expect(Number.isInteger(seed)).toBe(true);
  });

  test("replaces -1 by the context size, because llama.cpp's server does not accept it", () => {
    const sampling = { repeatLastN: -1, dryPenaltyLastN: -1 };
    expect(bodyOf(promptRequest("x", { sampling }))).toMatchObject({
      repeat_last_n: 4096,
      dry_penalty_last_n: 4096,
    });
  });

  test("sends the token limit, or -1 if there is none", () => {
    expect(bodyOf(promptRequest("x", { maxTokens: 1 }))).toMatchObject({ max_tokens: 1 });
    const { maxTokens: _, ...unlimited } = promptRequest("x");
    expect(bodyOf(unlimited)).toMatchObject({ max_tokens: -1 });
  });

  test("is verbose only if the request has stop sequences", () => {
    expect(bodyOf(promptRequest("x"))).not.toHaveProperty("verbose");
    expect(bodyOf(promptRequest("x", { stop: ["."] }))).toMatchObject({ stop: ["."], verbose: true });
  });

  test.each([
    [{ type: "text" }, {}, {}],
    [{ type: "json" }, { json_schema: { type: "object" } }, { response_format: { type: "json_object" } }],
    [
      { type: "json_schema", schema: { const: 1 } },
      { json_schema: { const: 1 } },
      { response_format: { type: "json_schema", json_schema: { name: "answer", schema: { const: 1 } } } },
    ],
    [{ type: "grammar", grammar: "root ::= [a]" }, { grammar: "root ::= [a]" }, { grammar: "root ::= [a]" }],
  ] as const)("converts the format %j", (format, raw, chat) => {
    expect(bodyOf(promptRequest("x", { format }))).toMatchObject(raw);
    expect(bodyOf(chatRequest("x", { format }))).toMatchObject(chat);
  });

  test("disables reasoning in a formatted answer if thinking is off", () => {
    const format = { type: "json" } as const;
    expect(bodyOf(chatRequest("x", { format }, { thinking: false }))).toMatchObject({
      reasoning_format: "none",
    });
    expect(bodyOf(chatRequest("x", { format }, { thinking: true }))).not.toHaveProperty("reasoning_format");
  });

  test("requests timings per token only if they are needed", () => {
    expect(bodyOf(promptRequest("x"))).not.toHaveProperty("timings_per_token");
    expect(bodyOf(promptRequest("x", { timings: true }))).toMatchObject({ timings_per_token: true });
  });

  test.each(["auto", "none", "required"] as const)("sends the tool choice %s", (toolChoice) => {
    const body = bodyOf(
      chatRequest("x", {}, { tools: [{ name: "a" }], toolChoice, parallelToolCalls: false }),
    );
    expect(body).toMatchObject({
      tool_choice: toolChoice,
      parallel_tool_calls: false,
      timings_per_token: true,
    });
  });

  test("sends only the named tool and requires a call if a tool is chosen by name", () => {
    const tools = [{ name: "a" }, { name: "b", description: "second" }];
    const body = bodyOf(chatRequest("x", {}, { tools, toolChoice: { name: "b" } }));
    expect(body).toMatchObject({
      tool_choice: "required",
      tools: [{ type: "function", function: { name: "b" } }],
    });
    expect(body["tools"]).toHaveLength(1);
  });

  test("omits the tool fields if there are no tools", () => {
    expect(bodyOf(chatRequest("x"))).not.toHaveProperty("tools");
    expect(bodyOf(chatRequest("x"))).not.toHaveProperty("tool_choice");
  });

  test("sends template variables, including thinking", () => {
    const body = bodyOf(
      chatRequest("x", {}, { thinking: true, templateVariables: { reasoning_effort: "low" } }),
    );
    expect(body).toMatchObject({ chat_template_kwargs: { enable_thinking: true, reasoning_effort: "low" } });
  });

  test("sends thinking under both names that templates use", () => {
    expect(bodyOf(chatRequest("x", {}, { thinking: true }))["chat_template_kwargs"]).toEqual({
      enable_thinking: true,
      thinking: true,
    });
  });

  test("sends the maximum draft tokens of the request, or else those of the model", () => {
    expect(guessesOf(0)).toBe(0);
    expect(guessesOf(16)).toBe(16);
    expect(guessesOf(16, { guessTokens: 0 })).toBe(0);
    expect(guessesOf(0, { guessTokens: 8 })).toBe(8);
  });

  test("always sends adapter scales, because llama.cpp would otherwise use those of the slot's last request", () => {
    const loaded = { ...context, adapterScales: [1, 0.5] };
    const loraOf = (request: GenerationRequest) => buildCompletionCall(request, loaded).body["lora"];
    expect(loraOf(promptRequest("x"))).toEqual([
      { id: 0, scale: 1 },
      { id: 1, scale: 0.5 },
    ]);
    expect(loraOf(promptRequest("x", { adapterScales: [0, -2] }))).toEqual([
      { id: 0, scale: 0 },
      { id: 1, scale: -2 },
    ]);
    expect(bodyOf(promptRequest("x"))).not.toHaveProperty("lora");
  });

  test("disables reasoning before a format only if the template requires that", () => {
    const request = chatRequest("x", { format: { type: "json" } }, { thinking: false });
    const body = (mustDisableReasoning: boolean) =>
      buildCompletionCall(request, { ...context, mustDisableReasoning }).body["reasoning_format"];
    expect(body(true)).toBe("none");
    expect(body(false)).toBeUndefined();
  });

  test("turns thinking off if the answer continues an assistant message", () => {
    const messages = [{ role: "assistant" as const, content: [{ type: "text" as const, text: "I am" }] }];
    expect(bodyOf(chatRequest("", {}, { messages, thinking: true }))).toMatchObject({
      chat_template_kwargs: { enable_thinking: false },
    });
  });

  test("replaces images by markers and adds text after the last one", () => {
    const data = new Uint8Array([1]);
    const call = buildCompletionCall(
      chatRequest([
        { type: "text", text: "see" },
        { type: "image", data },
      ]),
      context,
    );
    expect(call.files).toEqual([data]);
    expect(call.body).toMatchObject({
      messages: [{ role: "user", content: [{ text: "see" }, { text: "<media>" }, { text: "" }] }],
    });
  });

  test("converts tool calls and their results", () => {
    const messages = [
      {
        role: "assistant" as const,
        content: [],
        toolCalls: [{ id: "1", name: "f", arguments: '{"a":1}' }],
        reasoning: "so",
      },
      { role: "tool" as const, content: [{ type: "text" as const, text: "42" }], toolCallId: "1", name: "f" },
    ];
    expect(bodyOf(chatRequest("", {}, { messages }))).toMatchObject({
      messages: [
        {
          role: "assistant",
          content: null,
          reasoning_content: "so",
          tool_calls: [{ id: "1", type: "function", function: { name: "f", arguments: '{"a":1}' } }],
        },
        { role: "tool", content: "42", tool_call_id: "1", name: "f" },
      ],
    });
  });
});

test("replaces an unpaired surrogate in a request to llama.cpp", () => {
  expect(toRequestJson({ prompt: "a\ud83db" })).toBe(JSON.stringify({ prompt: "a\ufffdb" }));
});
