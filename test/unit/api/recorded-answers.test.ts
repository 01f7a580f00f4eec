import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { toMessageEvents } from "../../../src/api/anthropic/message-answer.ts";
import { toLines } from "../../../src/api/ollama/ollama-answer.ts";
import { chatLineSchema, placeInMessage } from "../../../src/api/ollama/ollama-chat.ts";
import { chatCompletionChunkSchema, toChatChunks } from "../../../src/api/openai/chat-answer.ts";
import { beginResponse } from "../../../src/api/openai/responses/response-object.ts";
import { responseRequestSchema } from "../../../src/api/openai/responses/response-schema.ts";
import { ResponseWriter } from "../../../src/api/openai/responses/response-writer.ts";
import { generationEventSchema } from "../../../src/engine/protocol/generation.ts";
import type { InferenceEvent } from "../../../src/inference/inference.ts";

/** Recorded events of an engine with daybreak-mini: each line has one event, and names its answer. */
const RECORDED = readFileSync(new URL("recorded-answers.ndjson", import.meta.url), "utf8");
const lineSchema = z.object({ answer: z.string(), event: generationEventSchema });
const ANSWERS = Map.groupBy(
  RECORDED.trimEnd()
    .split("\n")
    .map((line) => lineSchema.parse(JSON.parse(line))),
  ({ answer }) => answer,
);

async function* eventsOf(answer: string): AsyncGenerator<InferenceEvent> {
  for (const { event } of ANSWERS.get(answer) ?? []) {
    if (event.type === "done") yield { ...event, totalMs: 1, tokensPerSecond: 1 };
    else if (event.type !== "answer-progress" && event.type !== "tokens") yield event;
  }
}

/** Content of an answer, independent of the API. */
interface Outcome {
  text: string;
  thinking: string;
  /** Name and arguments. */
  calls: [string, string][];
  /** Finish reason in the API's terms. */
  end: unknown;
}

const nothing = (): Outcome => ({ text: "", thinking: "", calls: [], end: undefined });

async function collect(frames: AsyncIterable<string>): Promise<string[]> {
  const all: string[] = [];
  for await (const frame of frames) all.push(frame);
  return all;
}

function dataOf(frame: string): string {
  return /^data: (.*)$/m.exec(frame)?.[1] ?? "";
}

async function throughChat(answer: string): Promise<Outcome> {
  const head = { id: "chatcmpl-1", created: 1, model: "m" };
  const frames = (
    await collect(
      toChatChunks(head, eventsOf(answer), {
        includeUsage: false,
        returnProgress: false,
        timingsPerToken: false,
        legacyCalls: false,
        customTools: new Set(),
      }),
    )
  ).map(dataOf);
  expect(frames.at(-1)).toBe("[DONE]");
  const outcome = nothing();
  for (const frame of frames.slice(0, -1)) {
    const [choice] = chatCompletionChunkSchema.strict().parse(JSON.parse(frame)).choices;
    outcome.text += choice?.delta.content ?? "";
    outcome.thinking += choice?.delta.reasoning_content ?? "";
    outcome.end = choice?.finish_reason ?? undefined;
    for (const { index, function: part } of choice?.delta.tool_calls ?? []) {
      const call = (outcome.calls[index] ??= ["", ""]);
      call[0] += part?.name ?? "";
      call[1] += part?.arguments ?? "";
    }
  }
  return outcome;
}

const blockEventSchema = z.looseObject({
  type: z.string(),
  index: z.number().optional(),
  content_block: z.looseObject({ type: z.string(), name: z.string().optional() }).optional(),
  delta: z
    .looseObject({
      text: z.string().default(""),
      thinking: z.string().default(""),
      partial_json: z.string().default(""),
      stop_reason: z.string().optional(),
    })
    .optional(),
});

async function throughMessages(answer: string): Promise<Outcome> {
  const options = { id: "msg_1", model: "m", stopSequences: ["demo"], omitsThinking: false };
  const frames = toMessageEvents(options, eventsOf(answer));
  const outcome = nothing();
  for (const frame of await collect(frames)) {
    const event = blockEventSchema.parse(JSON.parse(dataOf(frame)));
    if (event.content_block?.type === "tool_use") outcome.calls.push([event.content_block.name ?? "", ""]);
    outcome.text += event.delta?.text ?? "";
    outcome.thinking += event.delta?.thinking ?? "";
    if (event.delta?.partial_json) outcome.calls.at(-1)![1] += event.delta.partial_json;
    outcome.end = event.delta?.stop_reason ?? outcome.end;
  }
  return outcome;
}

async function throughResponses(answer: string): Promise<Outcome> {
  const writer = new ResponseWriter(
    beginResponse(responseRequestSchema.parse({ input: "hi" }), "m"),
    () => undefined,
  );
  const outcome = nothing();
  let numbers = 0;
  for await (const event of writer.events(eventsOf(answer))) {
    expect(event.sequence_number).toBe(numbers++);
    const delta = typeof event["delta"] === "string" ? event["delta"] : "";
    if (event.type === "response.output_text.delta") outcome.text += delta;
    if (event.type === "response.reasoning_summary_text.delta") outcome.thinking += delta;
    if (event.type === "response.function_call_arguments.delta") outcome.calls.at(-1)![1] += delta;
    const name: unknown = Object(event["item"])["name"];
    if (event.type === "response.output_item.added" && typeof name === "string")
      outcome.calls.push([name, ""]);
    outcome.end = event.type;
  }
  return outcome;
}

async function throughOllama(answer: string): Promise<Outcome> {
  const label = { model: "m", loadMs: 0 };
  const outcome = nothing();
  for (const line of await collect(toLines(eventsOf(answer), label, placeInMessage))) {
    const parsed = chatLineSchema.parse(JSON.parse(line));
    outcome.text += parsed.message.content;
    outcome.thinking += parsed.message.thinking ?? "";
    for (const { function: call } of parsed.message.tool_calls ?? [])
      outcome.calls.push([call.name, JSON.stringify(call.arguments)]);
    if (parsed.done) outcome.end = parsed.done_reason;
  }
  return outcome;
}

const PARIS = '{"city": "Paris"}';
const ROME = '{"city": "Rome"}';
const WHO = "I am daybreak-mini, a very small ";

describe.for<[string, Omit<Outcome, "end">, [string, string, string, string]]>([
  [
    "two tool calls",
    {
      text: "",
      thinking: "",
      calls: [
        ["get_weather", PARIS],
        ["get_weather", ROME],
      ],
    },
    ["tool_calls", "tool_use", "response.completed", "stop"],
  ],
  [
    "thinking, then text",
    { text: "12 + 30 = 40 + 2 = 42", thinking: "I add 12 and 30.\n", calls: [] },
    ["stop", "end_turn", "response.completed", "stop"],
  ],
  [
    "text with scores",
    { text: "Hello! How can I help you?", thinking: "", calls: [] },
    ["stop", "end_turn", "response.completed", "stop"],
  ],
  [
    "ended by a stop text",
    { text: WHO, thinking: "", calls: [] },
    ["stop", "stop_sequence", "response.completed", "stop"],
  ],
  [
    "cut off by its length",
    { text: "I am daybreak-", thinking: "", calls: [] },
    ["length", "max_tokens", "response.incomplete", "length"],
  ],
  [
    "a call cut off by its length",
    { text: "", thinking: "", calls: [["get_weather", '{"']] },
    ["length", "max_tokens", "response.incomplete", "length"],
  ],
])("the recorded answer: %s", ([answer, outcome, [chat, messages, responses, ollama]]) => {
  test("matches the recording", () => {
    expect(ANSWERS.get(answer)?.at(-1)?.event.type).toBe("done");
  });

  test.for([
    ["chat completions", throughChat, chat],
    ["messages", throughMessages, messages],
    ["responses", throughResponses, responses],
  ] as const)("through %s", async ([, through, end]) => {
    expect(await through(answer)).toEqual({ ...outcome, end });
  });

  test("through Ollama, which sends only complete tool calls", async () => {
    const completeCalls = outcome.calls.filter(([, text]) => text.endsWith("}"));
    const calls = completeCalls.map(([name, text]) => [name, JSON.stringify(JSON.parse(text))]);
    expect(await throughOllama(answer)).toEqual({ ...outcome, calls, end: ollama });
  });
});
