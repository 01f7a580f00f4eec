import { accumulateResponse } from "openai/lib/responses/ResponseAccumulator";
import type { Response as OpenAIResponse, ResponseStreamEvent } from "openai/resources/responses/responses";
import { describe, expect, test } from "vitest";
import {
  type ResponseObject,
  responseSchema,
} from "../../../../../src/api/openai/responses/response-object.ts";
import { toInferenceRequest } from "../../../../../src/api/openai/responses/response-request.ts";
import { responseRequestSchema } from "../../../../../src/api/openai/responses/response-schema.ts";
import { sseEvents, testApp, type TestApp } from "../../../../support/test-app.ts";
import { CUSTOM_CALLS } from "../custom-tools/custom-events.ts";
import { ACTION, body, BUILT_IN, BUILT_IN_CALLS, EXEC, PATCH_TOOL, UPDATE } from "./client-run-requests.ts";
import { clientOf } from "../chat-client.ts";

const PATH = "/v1/responses";
const builtInCall = (number: number) => ({
  id: expect.any(String),
  call_id: `call_${number}`,
  status: "completed",
});

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
  test("becomes a function with one text argument, and is listed as sent", async () => {
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
    const complete = await clientOf(testApp({ events: CUSTOM_CALLS })).responses.create(body);
    expect(withoutIds(snapshot?.output ?? [])).toEqual(withoutIds(complete.output));
  });

  test("can be selected by tool_choice and allowed_tools", async () => {
    const all = testApp({ events: CUSTOM_CALLS });
    const named = { type: "custom", name: "apply_patch" };
    const chosen = await responseOf(all, { tool_choice: named });
    expect(chosen.tool_choice).toEqual(named);
    expect(all.lastRequest().format).toMatchObject({
      type: "grammar",
      grammar: expect.stringContaining(String.raw`\"apply_patch\"`),
    });
    const tools = [named, { type: "function", name: "get_weather" }, { type: "web_search" }];
    for (const [count, allowed] of [[1, [named]] as const, [2, tools] as const]) {
      await responseOf(all, { tool_choice: { type: "allowed_tools", mode: "auto", tools: allowed } });
      const { input } = all.lastRequest();
      expect(input.kind === "chat" && input.tools).toHaveLength(count);
    }
  });
});

describe("a client-side built-in tool of OpenAI", () => {
  test("becomes a function", async () => {
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

  test("is returned as a call of its own type, unless the call is truncated", async () => {
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

  test("is the only output of a response without text", async () => {
    const alone = [...BUILT_IN_CALLS.slice(0, 5), ...BUILT_IN_CALLS.slice(-1)];
    const { output } = await responseOf(testApp({ events: alone }), { tools: BUILT_IN });
    expect(output.map(({ type }) => type)).toEqual(["shell_call"]);
  });

  test("streams complete calls", async () => {
    const events = await eventsOf(testApp({ events: BUILT_IN_CALLS }), { tools: BUILT_IN });
    expect(events.slice(2, -1).map(({ type }) => type)).toEqual(
      Array.from({ length: 4 }, () => ["response.output_item.added", "response.output_item.done"]).flat(),
    );
  });

  test("causes a warning if it would run on a server", () => {
    const tools = [
      ...BUILT_IN,
      { type: "web_search" },
      { type: "shell", environment: { type: "container_auto" } },
    ];
    const parsed = responseRequestSchema.parse({ tools: [...tools, { type: "web_search" }] });
    const items = [{ role: "user" as const, content: "hi" }];
    const { warnings } = toInferenceRequest(parsed, { items, earlier: 0 });
    expect(warnings).toEqual([
      "Tools that run on a server are not supported and were ignored: web_search, shell.",
    ]);
  });

  test("is dropped if a function has the same name", async () => {
    const { tools } = await responseOf(testApp(), { tools: [...BUILT_IN, PATCH_TOOL] });
    expect(tools.map(({ type }) => type)).toEqual(["shell", "local_shell", "custom"]);
  });
});
