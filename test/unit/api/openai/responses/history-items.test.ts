import { describe, expect, test } from "vitest";
import { testApp } from "../../../../support/test-app.ts";

const PATH = "/v1/responses";
const user = { role: "user", content: "hi" };
const assistantMessage = (value: string) => ({
  type: "message",
  id: "msg_1",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text: value, annotations: [] }],
});
const text = (value: string) => [{ type: "text", text: value }];

async function messagesOf(input: readonly object[]): Promise<unknown> {
  const all = testApp();
  const answer = await all.post(PATH, { model: "fake", input });
  expect(await answer.json()).toMatchObject({ object: "response" });
  const request = all.lastRequest();
  return request.input.kind === "chat" && request.input.messages;
}

describe("items of hosted tools of another server become text in the prompt", () => {
  test("in an assistant message", async () => {
    expect(
      await messagesOf([
        user,
        { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "I search." }] },
        {
          type: "web_search_call",
          id: "ws_1",
          status: "completed",
          action: { type: "search", query: "cats" },
        },
        { type: "reasoning", id: "rs_2", summary: [{ type: "summary_text", text: "I know." }] },
        assistantMessage("Cats purr."),
        { type: "function_call", call_id: "a", name: "forgotten", arguments: "{}" },
        { type: "function_call_output", call_id: "a", output: "Done." },
      ]),
    ).toEqual([
      { role: "user", content: text("hi") },
      {
        role: "assistant",
        reasoning: "I search.\n\nI know.",
        content: [
          ...text('[web_search_call {"action":{"type":"search","query":"cats"}}]'),
          ...text("Cats purr."),
        ],
        toolCalls: [{ id: "a", name: "forgotten", arguments: "{}" }],
      },
      { role: "tool", content: text("Done."), toolCallId: "a" },
    ]);
  });

  test("after a call, in a new assistant message", async () => {
    const found = { filename: "cats.txt", score: 0.5, text: "They sleep." };
    expect(
      await messagesOf([
        { type: "mcp_call", id: "m", name: "look", server_label: "zoo", arguments: "{}", output: "A cat." },
        { type: "function_call", call_id: "a", name: "f", arguments: "{}" },
        { type: "file_search_call", id: "fs", status: "completed", queries: ["cats"], results: [found] },
        { type: "image_generation_call", id: "ig", status: "completed", result: "iVBORw0KGgo".repeat(99) },
      ]),
    ).toEqual([
      {
        role: "assistant",
        content: text('[mcp_call {"name":"look","server_label":"zoo","arguments":"{}","output":"A cat."}]'),
        toolCalls: [{ id: "a", name: "f", arguments: "{}" }],
      },
      {
        role: "assistant",
        content: [
          ...text(
            '[file_search_call {"queries":["cats"],"results":[{"filename":"cats.txt","score":0.5,"text":"They sleep."}]}]',
          ),
          ...text("[image_generation_call]"),
        ],
      },
    ]);
  });

  test("in a user message", async () => {
    expect(
      await messagesOf([
        {
          type: "computer_call",
          id: "c",
          call_id: "c",
          action: { type: "click", x: 1, y: 2 },
          status: "completed",
        },
        {
          type: "computer_call_output",
          call_id: "c",
          output: { type: "computer_screenshot", image_url: `data:image/png;base64,${"A".repeat(999)}` },
        },
        { type: "mcp_approval_response", approval_request_id: "m", approve: true },
      ]),
    ).toEqual([
      { role: "assistant", content: text('[computer_call {"action":{"type":"click","x":1,"y":2}}]') },
      { role: "user", content: text("[computer_call_output]") },
      { role: "user", content: text('[mcp_approval_response {"approve":true}]') },
    ]);
  });

  test("unless they have no content for the model", async () => {
    expect(
      await messagesOf([
        { type: "compaction", id: "cmp_1", encrypted_content: "gAAAA" },
        { type: "additional_tools", role: "developer", tools: [{ type: "web_search" }] },
        { type: "mcp_list_tools", id: "m", server_label: "zoo", tools: [] },
        { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAAA" },
        user,
        { role: "assistant", content: [{ type: "refusal", refusal: "No." }] },
        user,
        { type: "compaction_trigger" },
      ]),
    ).toEqual([
      { role: "assistant", content: [] },
      { role: "user", content: text("hi") },
      { role: "assistant", content: text("No.") },
      { role: "user", content: text("hi") },
    ]);
  });

  test("and are listed as sent", async () => {
    const all = testApp();
    const call = { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search" } };
    const answer = await all.post(PATH, { model: "fake", input: [user, call, user] });
    const { id } = Object(await answer.json());
    const listed = await all.app.request(`${PATH}/${id}/input_items?order=asc`);
    expect(await listed.json()).toMatchObject({ data: [{ role: "user" }, call, { role: "user" }] });
  });
});

describe("an invalid item is rejected with the field at fault", () => {
  test.for<[object, string]>([
    [{ type: "function_call", call_id: "a" }, "input[0].name: is missing"],
    [{ type: "custom_tool_call", call_id: "a", name: "x" }, "input[0].input: is missing"],
    [{ type: "hologram" }, "input[0]"],
    [{ type: "message", content: "hi" }, "input[0]"],
  ])("%j", async ([item, message]) => {
    const answer = await testApp().post(PATH, { model: "fake", input: [item] });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { message: expect.stringContaining(message) } });
  });
});
