import OpenAI from "openai";
import { accumulateResponse } from "openai/lib/responses/ResponseAccumulator";
import type {
  Response as OpenAIResponse,
  ResponseCreateParamsNonStreaming,
  ResponseInputItem,
  ResponseStreamEvent,
} from "openai/resources/responses/responses";
import { describe, expect, test } from "vitest";
import {
  responseSchema,
  type ResponseObject,
} from "../../../../../src/dialects/openai/responses/response-object.ts";
import type { GenerationEvent } from "../../../../../src/engine/protocol/generation.ts";
import { fetchOf, sseEvents, testApp, type TestApp } from "../../../../support/test-app.ts";
import { THINKING_AND_TOOLS } from "../../recorded-events.ts";
import { CUSTOM_CALLS } from "../custom-tools/custom-events.ts";
import { PATCH_GRAMMAR } from "../custom-tools/patch-grammar.ts";

const PATH = "/v1/responses";
const PATCH_TOOL = {
  type: "custom" as const,
  name: "apply_patch",
  description: "Edits files.",
  format: { type: "grammar" as const, syntax: "lark" as const, definition: PATCH_GRAMMAR },
};
const WEATHER = {
  type: "function" as const,
  name: "get_weather",
  parameters: { type: "object" },
  strict: null,
};
const BUILT_IN = [
  { type: "shell" as const },
  { type: "local_shell" as const },
  { type: "apply_patch" as const },
];
const body: ResponseCreateParamsNonStreaming = { model: "fake", input: "hi", tools: [PATCH_TOOL, WEATHER] };

const ACTION = { commands: ["ls", "pwd"], timeout_ms: 1000 };
const EXEC = { command: ["ls", "-l"], working_directory: "/tmp" };
const UPDATE = { type: "update_file", path: "a.ts", diff: "@@\n-a\n+b\n" };

/** The model calls each of the built-in tools, and the last call is cut off. */
const BUILT_IN_CALLS: readonly GenerationEvent[] = [
  ...CUSTOM_CALLS.slice(0, 2),
  ...[
    ["shell", ACTION] as const,
    ["local_shell", EXEC] as const,
    ["apply_patch", UPDATE] as const,
    ["apply_patch", { type: "delete_file", path: "b.ts", diff: "" }] as const,
  ].flatMap(([name, input], index): GenerationEvent[] => [
    { type: "tool-call-start", index, id: `call_${index}`, name },
    { type: "tool-call-delta", index, arguments: JSON.stringify(input).slice(0, 9) },
    { type: "tool-call-delta", index, arguments: JSON.stringify(input).slice(9) },
  ]),
  { type: "tool-call-start", index: 4, id: "call_4", name: "shell" },
  { type: "tool-call-delta", index: 4, arguments: '{"commands":["rm' },
  ...CUSTOM_CALLS.slice(-1),
];

const builtInCall = (number: number) => ({
  id: expect.any(String),
  call_id: `call_${number}`,
  status: "completed",
});

function clientOf(all: TestApp): OpenAI {
  return new OpenAI({
    baseURL: "http://daybreak.test/v1",
    apiKey: "any",
    fetch: fetchOf(all),
    maxRetries: 0,
  });
}

async function responseOf(all: TestApp, fields: object = {}): Promise<ResponseObject> {
  const answer = await all.post(PATH, { ...body, ...fields });
  return responseSchema.strict().parse(await answer.json());
}

async function eventsOf(all: TestApp, fields: object = {}): Promise<ResponseStreamEvent[]> {
  const events = await sseEvents(await all.post(PATH, { ...body, ...fields, stream: true }));
  return events.map(({ data }): ResponseStreamEvent => JSON.parse(data));
}

const withoutIds = (items: readonly object[]): unknown[] => items.map((item) => ({ ...item, id: "id" }));

describe("a custom tool of the responses API", () => {
  test("is a function of one text for the model, and listed as it was sent", async () => {
    const all = testApp({ events: CUSTOM_CALLS });
    const { tools } = await responseOf(all);
    expect(tools).toMatchObject([PATCH_TOOL, { type: "function", name: "get_weather" }]);
    expect(all.lastRequest().input).toMatchObject({
      tools: [
        {
          name: "apply_patch",
          parameters: { properties: { input: { type: "string", pattern: expect.any(String) } } },
        },
        { name: "get_weather" },
      ],
    });
  });

  test("is called with its input", async () => {
    const { output } = await responseOf(testApp({ events: CUSTOM_CALLS }));
    expect(output).toEqual([
      {
        type: "custom_tool_call",
        id: expect.stringMatching(/^ctc_/),
        status: "completed",
        call_id: "call_a",
        name: "apply_patch",
        input: "one\n“two”",
      },
      expect.objectContaining({ type: "function_call", call_id: "call_b", arguments: '{"city":"Rome"}' }),
      expect.objectContaining({ type: "custom_tool_call", call_id: "call_c", input: "loose" }),
    ]);
  });

  test("streams its input", async () => {
    const events = await eventsOf(testApp({ events: CUSTOM_CALLS }));
    const first = events.filter((event) => "output_index" in event && event.output_index === 0);
    expect(first).toMatchObject([
      {
        type: "response.output_item.added",
        item: { type: "custom_tool_call", name: "apply_patch", input: "", status: "in_progress" },
      },
      { type: "response.custom_tool_call_input.delta", delta: "one\n" },
      { type: "response.custom_tool_call_input.delta", delta: "“two”" },
      { type: "response.custom_tool_call_input.done", input: "one\n“two”" },
      { type: "response.output_item.done", item: { input: "one\n“two”", status: "completed" } },
    ]);
    let snapshot: OpenAIResponse | undefined;
    for (const event of events.slice(0, -1)) snapshot = accumulateResponse(event, snapshot);
    const whole = await clientOf(testApp({ events: CUSTOM_CALLS })).responses.create(body);
    expect(withoutIds(snapshot?.output ?? [])).toEqual(withoutIds(whole.output));
  });

  test("can be chosen, and allowed among others", async () => {
    const all = testApp({ events: CUSTOM_CALLS });
    const named = { type: "custom", name: "apply_patch" };
    const chosen = await responseOf(all, { tool_choice: named });
    expect(chosen.tool_choice).toEqual(named);
    expect(all.lastRequest().format).toMatchObject({
      schema: { anyOf: [{ properties: { name: { const: "apply_patch" } } }] },
    });
    const tools = [named, { type: "function", name: "get_weather" }, { type: "web_search" }];
    for (const [count, allowed] of [[1, [named]] as const, [2, tools] as const]) {
      await responseOf(all, { tool_choice: { type: "allowed_tools", mode: "auto", tools: allowed } });
      const { input } = all.lastRequest();
      expect(input.kind === "chat" && input.tools).toHaveLength(count);
    }
  });
});

describe("a tool of OpenAI's service that the client runs", () => {
  test("is a function for the model", async () => {
    const all = testApp({ events: BUILT_IN_CALLS });
    const { tools } = await responseOf(all, { tools: BUILT_IN });
    expect(tools).toEqual(BUILT_IN);
    expect(all.lastRequest().input).toMatchObject({
      tools: [
        { name: "shell", parameters: { required: ["commands"] } },
        { name: "local_shell", parameters: { required: ["command"] } },
        { name: "apply_patch", parameters: { required: ["type", "path", "diff"] } },
      ],
    });
  });

  test("is called in a form of its own, unless the call is cut off", async () => {
    const { output } = await responseOf(testApp({ events: BUILT_IN_CALLS }), { tools: BUILT_IN });
    expect(output).toEqual([
      {
        ...builtInCall(0),
        type: "shell_call",
        action: { ...ACTION, max_output_length: null },
        environment: null,
      },
      {
        ...builtInCall(1),
        type: "local_shell_call",
        action: { type: "exec", env: {}, timeout_ms: null, ...EXEC },
      },
      { ...builtInCall(2), type: "apply_patch_call", operation: UPDATE },
      { ...builtInCall(3), type: "apply_patch_call", operation: { type: "delete_file", path: "b.ts" } },
    ]);
  });

  test("streams whole calls", async () => {
    const events = await eventsOf(testApp({ events: BUILT_IN_CALLS }), { tools: BUILT_IN });
    expect(events.slice(2, -1).map(({ type }) => type)).toEqual(
      Array.from({ length: 4 }, () => ["response.output_item.added", "response.output_item.done"]).flat(),
    );
  });

  test("makes way for a function of the same name", async () => {
    const { tools } = await responseOf(testApp(), { tools: [...BUILT_IN, PATCH_TOOL] });
    expect(tools.map(({ type }) => type)).toEqual(["shell", "local_shell", "custom"]);
  });
});

describe("what a response has can be sent back, with the outputs of its calls", () => {
  const outputs: readonly [
    string,
    readonly GenerationEvent[],
    object,
    readonly ResponseInputItem[],
    unknown,
  ][] = [
    [
      "thoughts, text and functions",
      THINKING_AND_TOOLS,
      { tools: [WEATHER] },
      [
        { type: "function_call_output", call_id: "call_a", output: "Sunny." },
        { type: "function_call_output", call_id: "call_b", output: "Noon." },
      ],
      [
        { role: "user" },
        {
          role: "assistant",
          reasoning: "The user wants the weather.",
          content: [{ text: "Let me look — “ok”." }],
          toolCalls: [
            { id: "call_a", name: "get_weather", arguments: '{"city":"Köln"}' },
            { id: "call_b", name: "get_time", arguments: "{}" },
          ],
        },
        { role: "tool", content: [{ text: "Sunny." }], toolCallId: "call_a" },
        { role: "tool", content: [{ text: "Noon." }], toolCallId: "call_b" },
      ],
    ],
    [
      "custom tools",
      CUSTOM_CALLS,
      {},
      [{ type: "custom_tool_call_output", call_id: "call_a", output: "Done." }],
      [
        { role: "user" },
        {
          role: "assistant",
          toolCalls: [
            { id: "call_a", name: "apply_patch", arguments: '{"input":"one\\n“two”"}' },
            { id: "call_b", name: "get_weather", arguments: '{"city":"Rome"}' },
            { id: "call_c", name: "apply_patch", arguments: '{"input":"loose"}' },
          ],
        },
        { role: "tool", content: [{ text: "Done." }], toolCallId: "call_a" },
      ],
    ],
    [
      "built-in tools",
      BUILT_IN_CALLS,
      { tools: BUILT_IN },
      [
        {
          type: "shell_call_output",
          call_id: "call_0",
          output: [
            { stdout: "a.ts\n", stderr: "", outcome: { type: "exit", exit_code: 0 } },
            { stdout: "", stderr: "slow", outcome: { type: "timeout" } },
          ],
        },
        { type: "local_shell_call_output", id: "call_1", output: "a.ts" },
        { type: "apply_patch_call_output", call_id: "call_2", status: "failed", output: "no such file" },
        { type: "apply_patch_call_output", call_id: "call_3", status: "completed" },
      ],
      [
        { role: "user" },
        {
          role: "assistant",
          toolCalls: [
            { id: "call_0", name: "shell", arguments: JSON.stringify(ACTION) },
            { id: "call_1", name: "local_shell", arguments: JSON.stringify(EXEC) },
            { id: "call_2", name: "apply_patch", arguments: JSON.stringify(UPDATE) },
            {
              id: "call_3",
              name: "apply_patch",
              arguments: '{"type":"delete_file","path":"b.ts","diff":""}',
            },
          ],
        },
        {
          role: "tool",
          content: [{ text: "a.ts\n\n[exit code 0]\nslow\n[timed out]" }],
          toolCallId: "call_0",
        },
        { role: "tool", content: [{ text: "a.ts" }], toolCallId: "call_1" },
        { role: "tool", content: [{ text: "failed: no such file" }], toolCallId: "call_2" },
        { role: "tool", content: [{ text: "completed" }], toolCallId: "call_3" },
      ],
    ],
  ];

  test.for(outputs)("%s", async ([, events, fields, results, messages]) => {
    const all = testApp({ events });
    const client = clientOf(all);
    const request = { ...body, ...fields };
    const first = await client.responses.create(request);
    const told = () => {
      const { input } = all.lastRequest();
      return input.kind === "chat" && input.messages;
    };
    const sent: ResponseInputItem[] = JSON.parse(JSON.stringify(first.output));
    await client.responses.create({
      ...request,
      input: [{ role: "user", content: "hi" }, ...sent, ...results],
    });
    expect(told()).toMatchObject(Object(messages));
    await client.responses.create({ ...request, input: [...results], previous_response_id: first.id });
    expect(told()).toMatchObject(Object(messages));
    const references = first.output.map(({ id }): ResponseInputItem => ({ id: String(id) }));
    const third = await client.responses.create({
      ...request,
      input: [{ role: "user", content: "hi" }, ...references, ...results],
    });
    expect(told()).toMatchObject(Object(messages));
    const items = await client.responses.inputItems.list(third.id, { order: "asc" });
    expect(items.data.slice(1).map(({ type }) => type)).toEqual(
      [...first.output, ...results].map(({ type }) => type),
    );
  });
});
