import { describe, expect, test } from "vitest";
import { toInferenceRequest } from "../../../../../src/api/openai/responses/response-request.ts";
import { responseRequestSchema } from "../../../../../src/api/openai/responses/response-schema.ts";
import { PATCH_GRAMMAR } from "../../../../support/patch-grammar.ts";
import type { InferenceRequest } from "../../../../../src/inference/inference.ts";

const PNG = Buffer.from("89504e470d0a1a0a", "hex");
const IMAGE_URL = `data:image/png;base64,${PNG.toString("base64")}`;
const TOOLS = [
  { type: "function", name: "get_weather", parameters: { type: "object" }, strict: true },
  { type: "function", name: "get_time", parameters: null },
];

function requestOf(fields: object): InferenceRequest {
  const body = responseRequestSchema.parse({ input: [{ role: "user", content: "hi" }], ...fields });
  const input = Array.isArray(body.input) ? body.input : [];
  const items = input.filter((item) => item.type !== "item_reference");
  return toInferenceRequest(body, { items, earlier: 0 });
}

function messagesOf(input: readonly object[], fields: object = {}): unknown {
  const request = requestOf({ input, ...fields });
  return request.input.kind === "chat" && request.input.messages;
}

const text = (value: string) => [{ type: "text", text: value }];

describe("conversion of items to messages", () => {
  test("puts instructions first, and treats developer as system", () => {
    expect(
      messagesOf(
        [
          { role: "developer", content: "Use metres." },
          { type: "message", role: "user", content: [{ type: "input_text", text: "How far?" }] },
        ],
        { instructions: "Be brief." },
      ),
    ).toEqual([
      { role: "system", content: text("Be brief.") },
      { role: "system", content: text("Use metres.") },
      { role: "user", content: text("How far?") },
    ]);
  });

  test("joins reasoning, text and calls of one assistant turn to one message", () => {
    expect(
      messagesOf([
        { role: "user", content: "Weather and time?" },
        { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm." }] },
        {
          type: "message",
          id: "msg_1",
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text: "Let me look.", annotations: [] }],
        },
        { type: "function_call", id: "fc_1", call_id: "a", name: "get_weather", arguments: "{}" },
        { type: "function_call", call_id: "b", name: "get_time", arguments: "{}" },
        { type: "function_call_output", call_id: "a", output: "Sunny." },
        {
          type: "function_call_output",
          call_id: "b",
          output: [{ type: "input_image", image_url: IMAGE_URL, detail: "auto" }],
        },
      ]),
    ).toEqual([
      { role: "user", content: text("Weather and time?") },
      {
        role: "assistant",
        reasoning: "Hm.",
        content: text("Let me look."),
        toolCalls: [
          { id: "a", name: "get_weather", arguments: "{}" },
          { id: "b", name: "get_time", arguments: "{}" },
        ],
      },
      { role: "tool", content: text("Sunny."), toolCallId: "a" },
      { role: "tool", content: [{ type: "image", data: new Uint8Array(PNG) }], toolCallId: "b" },
    ]);
  });

  test("starts a new message with reasoning or text after text", () => {
    expect(
      messagesOf([
        { role: "assistant", content: "One." },
        { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "Hm." }] },
        { role: "assistant", content: [{ type: "refusal", refusal: "No." }] },
        { role: "user", content: [{ type: "input_image", image_url: IMAGE_URL, detail: "low" }] },
      ]),
    ).toEqual([
      { role: "assistant", content: text("One.") },
      { role: "assistant", reasoning: "Hm.", content: text("No.") },
      { role: "user", content: [{ type: "image", data: new Uint8Array(PNG) }] },
    ]);
  });
});

describe("settings", () => {
  test("of length, sampling and format are passed to the engine", () => {
    const schema = { type: "object" };
    expect(
      requestOf({
        max_output_tokens: 7,
        temperature: 0,
        top_p: 0.5,
        top_logprobs: 3,
        text: { format: { type: "json_schema", name: "answer", schema, strict: true } },
      }),
    ).toMatchObject({
      maxTokens: 7,
      sampling: { temperature: 0, topP: 0.5 },
      logprobs: 3,
      format: { type: "json_schema", schema },
    });
    expect(requestOf({ text: { format: { type: "json_object" } } }).format).toEqual({ type: "json" });
    expect(requestOf({ include: ["message.output_text.logprobs"] }).logprobs).toBe(0);
    expect(requestOf({ include: ["reasoning.encrypted_content"] }).logprobs).toBeUndefined();
  });

  test("effort enables thinking, and none disables it", () => {
    expect(requestOf({ reasoning: { effort: "low", summary: "auto" } }).input).toMatchObject({
      templateVariables: { reasoning_effort: "low" },
    });
    expect(requestOf({ reasoning: { effort: "none" } }).input).toMatchObject({ thinking: false });
    expect(requestOf({}).input).not.toHaveProperty("thinking");
  });

  test("tool_choice selects a named tool or allowed tools", () => {
    expect(
      requestOf({ tools: TOOLS, tool_choice: { type: "function", name: "get_time" } }).input,
    ).toMatchObject({
      tools: [{ name: "get_weather" }, { name: "get_time" }],
      toolChoice: { name: "get_time" },
    });
    const allowed = {
      type: "allowed_tools",
      mode: "required",
      tools: [{ type: "function", name: "get_time" }],
    };
    expect(requestOf({ tools: TOOLS, tool_choice: allowed }).input).toMatchObject({
      tools: [{ name: "get_time" }],
      toolChoice: "required",
    });
  });

  test("tools of other types, which coding agents send, are ignored", () => {
    const container = { type: "shell", environment: { type: "container_auto" } };
    const tools = [{ type: "web_search" }, ...TOOLS, container, { type: "namespace", name: "a", tools: [] }];
    expect(requestOf({ tools }).input).toMatchObject({
      tools: [{ name: "get_weather" }, { name: "get_time" }],
      toolChoice: "auto",
      parallelToolCalls: true,
    });
  });
});

test("accepts the conversation of a coding agent that sends it completely each time", () => {
  const { input, format, maxTokens } = requestOf({
    client_metadata: { session: "1" },
    include: ["reasoning.encrypted_content"],
    input: [
      { type: "message", role: "developer", content: [{ type: "input_text", text: "Sandbox: none." }] },
      { type: "message", role: "user", content: [{ type: "input_text", text: "List the files." }] },
      { type: "reasoning", summary: [], content: null, encrypted_content: null },
      { type: "function_call", name: "shell", arguments: '{"cmd":"ls"}', call_id: "a" },
      { type: "function_call_output", call_id: "a", output: "README.md" },
    ],
    instructions: "You are a coding agent.",
    model: "any",
    parallel_tool_calls: true,
    prompt_cache_key: "1",
    reasoning: { effort: "medium", summary: "auto" },
    store: false,
    stream: true,
    text: { verbosity: "low" },
    tool_choice: "auto",
    tools: [
      { type: "function", name: "shell", description: "", strict: false, parameters: { type: "object" } },
      {
        type: "custom",
        name: "apply_patch",
        format: { type: "grammar", syntax: "lark", definition: PATCH_GRAMMAR },
      },
      { type: "web_search", external_web_access: false },
    ],
  });
  expect(input.kind === "chat" && input.messages.map(({ role }) => role)).toEqual([
    "system",
    "system",
    "user",
    "assistant",
    "tool",
  ]);
  expect(input).toMatchObject({ tools: [{ name: "shell" }, { name: "apply_patch" }], toolChoice: "auto" });
  expect({ format, maxTokens }).toEqual({ format: { type: "text" }, maxTokens: undefined });
});

describe.each(["function", "custom"])("the name of a %s tool", (type) => {
  test("may be one letter", () => {
    expect(requestOf({ tools: [{ type, name: "f" }] }).input).toMatchObject({ tools: [{ name: "f" }] });
  });

  test("must not be empty", () => {
    expect(() => requestOf({ tools: [{ type, name: "" }] })).toThrow("name");
  });
});
