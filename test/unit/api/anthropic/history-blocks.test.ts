import { describe, expect, test } from "vitest";
import { testApp } from "../../../support/test-app.ts";
import { BASE, messages, PATH } from "./message-client.ts";

const text = (value: string) => ({ type: "text", text: value });
const PDF = {
  type: "document",
  title: "Cats",
  source: { type: "base64", media_type: "application/pdf", data: "JVBERi0xLjQK".repeat(50) },
};

async function messagesOf(conversation: readonly object[]): Promise<unknown> {
  const all = testApp();
  const answer = await all.post(PATH, { ...BASE, messages: conversation });
  expect(await answer.json()).toMatchObject({ type: "message" });
  const { input } = all.lastRequest();
  return input.kind === "chat" && input.messages;
}

describe("blocks of another server's tools become text in the prompt", () => {
  test("in an assistant message", async () => {
    const content = [
      text("I search."),
      { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "cats" } },
      {
        type: "web_search_tool_result",
        tool_use_id: "srvtoolu_1",
        content: [{ type: "web_search_result", url: "https://a.b", title: "Cats", encrypted_content: "x" }],
      },
      { type: "code_execution_tool_result", tool_use_id: "s2", content: { stdout: "42", return_code: 0 } },
      { type: "mcp_tool_use", id: "m1", name: "look", server_name: "zoo", input: {} },
      { type: "mcp_tool_result", tool_use_id: "m1", is_error: false, content: [text("A cat.")] },
      text("Cats purr."),
      { type: "tool_use", id: "t1", name: "forgotten", input: { at: 1 } },
    ];
    const result = { type: "tool_result", tool_use_id: "t1", content: "Done." };
    expect(
      await messagesOf([...messages, { role: "assistant", content }, { role: "user", content: [result] }]),
    ).toMatchObject([
      { role: "user" },
      {
        role: "assistant",
        content: [
          text("I search."),
          text('[server_tool_use {"name":"web_search","input":{"query":"cats"}}]'),
          text('[web_search_tool_result {"content":[{"url":"https://a.b","title":"Cats"}]}]'),
          text('[code_execution_tool_result {"content":{"stdout":"42","return_code":0}}]'),
          text('[mcp_tool_use {"name":"look","server_name":"zoo"}]'),
          text('[mcp_tool_result {"is_error":false,"content":[{"text":"A cat."}]}]'),
          text("Cats purr."),
        ],
        toolCalls: [{ id: "t1", name: "forgotten", arguments: '{"at":1}' }],
      },
      { role: "tool", content: [text("Done.")], toolCallId: "t1" },
    ]);
  });

  test("in a tool result, including PDF documents", async () => {
    const content = [
      text("Two."),
      { type: "tool_reference", tool_name: "get_weather" },
      { type: "search_result", title: "Cats", source: "cats.org", content: [text("They sleep.")] },
      PDF,
    ];
    expect(
      await messagesOf([
        ...messages,
        { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "find", input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content }] },
      ]),
    ).toMatchObject([
      {},
      {},
      {
        role: "tool",
        content: [
          text("Two."),
          text("[tool_reference] get_weather"),
          text("Cats\n\ncats.org\n\nThey sleep."),
          text('[document {"title":"Cats","source":{"type":"base64","media_type":"application/pdf"}}]'),
        ],
      },
    ]);
  });

  test("in an answered user message", async () => {
    const request = {
      role: "user",
      content: [PDF, { type: "container_upload", file_id: "file_1" }, text("Hm?")],
    };
    const [question] = messages;
    expect(await messagesOf([request, { role: "assistant", content: "No." }, question!])).toMatchObject([
      {
        role: "user",
        content: [
          text('[document {"title":"Cats","source":{"type":"base64","media_type":"application/pdf"}}]'),
          text("[container_upload] file_1"),
          text("Hm?"),
        ],
      },
      {},
      {},
    ]);
  });

  test("but a PDF document in the latest message is rejected", async () => {
    const answer = await testApp().post(PATH, { ...BASE, messages: [{ role: "user", content: [PDF] }] });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { code: "unsupported_feature" } });
  });

  test("and an unknown block type is rejected", async () => {
    const answer = await testApp().post(PATH, {
      ...BASE,
      messages: [{ role: "user", content: [{ type: "video" }] }],
    });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      error: { message: expect.stringMatching(/^messages\.0\.content\.0\.type: must be "text"/) },
    });
  });
});
