import { describe, expect, test } from "vitest";
import { AnswerReader } from "../../../../src/engine/core/answer-reader.ts";
import type { CompletionChunk } from "../../../../src/engine/core/loop-request.ts";
import type {
  GenerationEvent,
  GenerationRequest,
  OutputFormat,
} from "../../../../src/engine/protocol/generation.ts";
import { promptRequest } from "../../../support/engine-fixture.ts";

/** Events of an answer with these chunks, after the start. */
function fold(
  chunks: readonly CompletionChunk[],
  request: Partial<GenerationRequest> = {},
): GenerationEvent[] {
  const events: GenerationEvent[] = [];
  const reader = new AnswerReader(promptRequest("x", request), undefined, (event) => events.push(event));
  for (const data of chunks) reader.receive({ kind: "data", data });
  reader.finish();
  return events.slice(1);
}

type Delta = NonNullable<NonNullable<CompletionChunk["choices"]>[0]["delta"]>;
const delta = (content: Delta): CompletionChunk => ({ choices: [{ delta: content, finish_reason: null }] });
const end = (finish_reason: string): CompletionChunk => ({ choices: [{ delta: {}, finish_reason }] });
const at = (predicted_n: number, content: Delta): CompletionChunk => ({
  ...delta(content),
  timings: { prompt_ms: 2, predicted_ms: predicted_n, predicted_n, cache_n: 1 },
});
const usage: CompletionChunk = {
  choices: [],
  usage: { prompt_tokens: 9, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 3 } },
  timings: { prompt_ms: 12.5, predicted_ms: 30 },
};

const call = (index: number, part: object): CompletionChunk => delta({ tool_calls: [{ index, ...part }] });

const figuresOf = (events: GenerationEvent[]): unknown[] =>
  events.flatMap((event) => ("soFar" in event && event.soFar ? [event.soFar] : []));

describe("AnswerReader", () => {
  test("returns text, finish reason, usage and timings", () => {
    expect(fold([delta({ content: "Hel" }), delta({ content: "lo" }), end("stop"), usage])).toEqual([
      { type: "text-delta", text: "Hel" },
      { type: "text-delta", text: "lo" },
      {
        type: "done",
        reason: "stop",
        usage: { promptTokens: 9, completionTokens: 4, cachedTokens: 3, reasoningTokens: 0 },
        timings: { promptMs: 12.5, completionMs: 30 },
      },
    ]);
  });

  test("reports drafted and accepted tokens", () => {
    const timings = { prompt_ms: 1, predicted_ms: 1, draft_n: 12, draft_n_accepted: 7 };
    expect(fold([end("stop"), { ...usage, timings }]).at(-1)).toMatchObject({
      usage: { completionTokens: 4, guesses: { tokens: 12, kept: 7 } },
    });
  });

  test("reports usage and timings with each delta only if requested", () => {
    const chunks = [
      { prompt_progress: { processed: 5, total: 5 } },
      at(1, { reasoning_content: "hm" }),
      at(3, { content: "yes" }),
      at(4, { tool_calls: [{ index: 0, function: { name: "f", arguments: "{}" } }] }),
      usage,
    ];
    expect(figuresOf(fold(chunks, { timings: true }))).toEqual(
      [1, 3, 4].map((completionTokens) => ({
        usage: { promptTokens: 5, completionTokens, cachedTokens: 1, reasoningTokens: 1 },
        timings: { promptMs: 2, completionMs: completionTokens },
      })),
    );
    expect(figuresOf(fold(chunks))).toEqual([]);
  });

  test("separates reasoning and counts its tokens", () => {
    const events = fold([delta({ reasoning_content: "hm" }), delta({ content: "yes" }), end("stop"), usage]);
    expect(events[0]).toEqual({ type: "reasoning-delta", text: "hm" });
    expect(events.at(-1)).toMatchObject({ usage: { reasoningTokens: 1 } });
  });

  test("starts each tool call once", () => {
    const events = fold([
      call(0, { id: "a", function: { name: "f", arguments: "" } }),
      call(0, { function: { arguments: '{"x":' } }),
      call(0, { function: { arguments: "1}" } }),
      call(1, { id: "b", function: { name: "g", arguments: "{}" } }),
      end("tool_calls"),
      usage,
    ]);
    expect(events.slice(0, -1)).toEqual([
      { type: "tool-call-start", index: 0, id: "a", name: "f" },
      { type: "tool-call-delta", index: 0, arguments: '{"x":' },
      { type: "tool-call-delta", index: 0, arguments: "1}" },
      { type: "tool-call-start", index: 1, id: "b", name: "g" },
      { type: "tool-call-delta", index: 1, arguments: "{}" },
    ]);
    expect(events.at(-1)).toMatchObject({ reason: "tool_calls" });
  });

  test("reports the figures before each further tool call, if chunks have timings", () => {
    const timings = { prompt_ms: 5, predicted_ms: 40, predicted_n: 20, cache_n: 2 };
    const events = fold([
      { prompt_progress: { processed: 7, total: 7 } },
      { ...call(0, { id: "a", function: { name: "f", arguments: "{}" } }), timings },
      { ...call(1, { id: "b", function: { name: "g" } }), timings: { ...timings, predicted_n: 24 } },
    ]);
    expect(events[1]).not.toHaveProperty("soFar");
    expect(events.find((event) => "id" in event && event.id === "b")).toMatchObject({
      soFar: {
        usage: { promptTokens: 7, completionTokens: 24, cachedTokens: 2, reasoningTokens: 0 },
        timings: { promptMs: 5, completionMs: 40 },
      },
    });
  });

  test("generates an ID for a tool call that has none", () => {
    const [start] = fold([delta({ tool_calls: [{ index: 0, function: { name: "f" } }] })]);
    expect(start).toMatchObject({
      type: "tool-call-start",
      id: expect.stringMatching(/^call_\w+$/),
    });
  });

  test("reads chunks of raw completions", () => {
    const events = fold([
      { choices: [{ text: "raw", finish_reason: null }] },
      { choices: [{ text: "", finish_reason: "length" }], ...usage },
    ]);
    expect(events[0]).toEqual({ type: "text-delta", text: "raw" });
  });

  test("reports the progress of the prompt", () => {
    expect(fold([{ prompt_progress: { processed: 3, total: 7 } }])[0]).toEqual({
      type: "prompt-progress",
      processed: 3,
      total: 7,
    });
  });

  test("reports the stop sequence that ended the answer", () => {
    const stopped = { ...end("stop"), __verbose: { stopping_word: "END" } };
    expect(fold([delta({ content: "x" }), stopped, usage]).at(-1)).toMatchObject({
      reason: "stop",
      stopSequence: "END",
    });
    expect(fold([{ ...end("stop"), __verbose: { stopping_word: "" } }]).at(-1)).not.toHaveProperty(
      "stopSequence",
    );
  });

  test("limits alternatives to the requested number, and includes the end token, which has no text", () => {
    const top_logprobs = [
      { id: 1, token: "a", logprob: -0.1, bytes: [97] },
      { id: 2, token: "b", logprob: -2, bytes: [98] },
    ];
    const entry = { id: 1, token: "a", logprob: -0.1, bytes: [97], top_logprobs };
    const chunks: CompletionChunk[] = [
      { choices: [{ delta: { content: "a" }, logprobs: { content: [entry] } }] },
      { choices: [{ delta: {}, logprobs: { content: [{ id: 0, token: "", logprob: -1, bytes: [] }] } }] },
    ];
    const [first, ...rest] = fold(chunks, { logprobs: 1 });
    expect(first).toMatchObject({
      logprobs: [{ id: 1, token: "a", logprob: -0.1, bytes: [97], top: [{ id: 1, token: "a" }] }],
    });
    expect(rest).toMatchObject([
      { type: "text-delta", text: "", logprobs: [{ token: "" }] },
      { type: "done" },
    ]);
    expect(fold(chunks)[0]).toMatchObject({ logprobs: [{ token: "a", top: [] }] });
  });

  test("completes an answer whose last chunks were lost", () => {
    const events: GenerationEvent[] = [];
    const request = promptRequest("x", { maxTokens: 2 });
    const reader = new AnswerReader(request, undefined, (event) => events.push(event));
    reader.receive({ kind: "data", data: delta({ content: "a" }) });
    reader.receive({ kind: "unreadable" });
    reader.finish();
    expect(events.slice(1)).toMatchObject([
      { type: "text-delta", text: "a" },
      { type: "text-delta", text: "\uFFFD" },
      { type: "done", reason: "length", usage: { completionTokens: 2 } },
    ]);
  });
});

const MAX_ANSWER_DEPTH = 100;

const text = (value: string): CompletionChunk => delta({ content: value });
const callArguments = (index: number, value: string): CompletionChunk =>
  call(index, { function: { name: "f", arguments: value } });
const deepest = "[{".repeat(MAX_ANSWER_DEPTH / 2);

function answerWith(format: OutputFormat, chunks: readonly CompletionChunk[]): () => unknown {
  return () => fold(chunks, { format });
}

describe("the nesting of an answer", () => {
  test.each([
    ["JSON", { type: "json" }, [text(deepest), text("[")]],
    ["JSON with a schema", { type: "json_schema", schema: {} }, [text(`{"a": ${deepest}`)]],
    [
      "tool call in an answer without a format",
      { type: "text" },
      [callArguments(0, deepest), callArguments(0, "["), callArguments(0, "[")],
    ],
    ["nesting after a closed array", { type: "json" }, [text(`[[]${deepest}`)]],
    [
      "nesting after a string with an escaped quote",
      { type: "json" },
      [text('["\\'), text('"",'), text(deepest)],
    ],
  ] as const)("stops an answer that is nested too deeply: %s", (_, format, chunks) => {
    expect(answerWith(format, chunks)).toThrow(`more than ${MAX_ANSWER_DEPTH} levels deep`);
  });

  test.each([
    ["maximum depth", { type: "json" }, [text(deepest)]],
    ["brackets in strings", { type: "json" }, [text(`["${deepest}[[`), text(`${deepest}\\"`), text(deepest)]],
    ["many short arrays", { type: "json" }, [text(`[${"[],".repeat(500)}`)]],
    ["several tool calls", { type: "text" }, [callArguments(0, deepest), callArguments(1, deepest)]],
    ["text that is not JSON", { type: "text" }, [text(deepest), text(deepest)]],
  ] as const)("accepts an answer that is not nested too deeply: %s", (_, format, chunks) => {
    expect(answerWith(format, chunks)).not.toThrow();
  });
});
