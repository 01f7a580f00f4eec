import { describe, expect, test } from "vitest";
import { chatRequest } from "../../../src/ui/chat/chat-request.ts";
import type { ChatMessage } from "../../../src/ui/chat/conversation.ts";

function message(content: string, more: Partial<ChatMessage> = {}): ChatMessage {
  return { id: "q", parent: undefined, role: "user", content, ...more };
}

describe("the request of a conversation", () => {
  test("contains the system prompt, and images as base64", () => {
    const question = message("What is it?", { images: ["data:image/png;base64,AAAA"] });
    expect(chatRequest([question], { system: "Be brief." })).toEqual({
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "What is it?", images: ["AAAA"] },
      ],
    });
    expect(chatRequest([message("Hello")], { system: "  " })).toEqual({
      messages: [{ role: "user", content: "Hello" }],
    });
  });

  test("contains files before the question, in fenced blocks whose fence is not in the file", () => {
    const files = [{ name: "notes.md", text: "```js\n1\n```" }];
    const content = "File: notes.md\n````\n```js\n1\n```\n````\n\nSum it up.";
    expect(chatRequest([message("Sum it up.", { files })], {})).toEqual({
      messages: [{ role: "user", content }],
    });
  });

  test("contains tool calls and their results", () => {
    const call = { id: "c1", name: "add", arguments: '{"a":1}' };
    const branch = [
      message("1 + 1?"),
      message("", { role: "assistant", toolCalls: [call] }),
      message("2", { role: "tool", callId: "c1" }),
    ];
    const tool = { name: "add", description: "Adds.", parameters: { type: "object" } };
    expect(chatRequest(branch, {}, [tool])).toEqual({
      messages: [
        { role: "user", content: "1 + 1?" },
        {
          role: "assistant",
          content: "",
          tool_calls: [{ id: "c1", function: { name: "add", arguments: '{"a":1}' } }],
        },
        { role: "tool", content: "2", tool_call_id: "c1" },
      ],
      tools: [{ type: "function", function: tool }],
    });
  });

  test("contains the sampling settings, stop sequences, the format and the number of logprobs", () => {
    const settings = { temperature: 0, min_p: 0.1, stop: ["END"], format: "json", logprobs: true };
    expect(chatRequest([message("Hi")], settings)).toMatchObject({
      temperature: 0,
      min_p: 0.1,
      stop: ["END"],
      format: "json",
      logprobs: 5,
    });
    expect(chatRequest([message("Hi")], { format: '{"type":"object"}' })).toMatchObject({
      format: { type: "object" },
    });
  });

  test.each(["{", "[]", "1"])("is rejected with an explanation if the JSON Schema is %s", (format) => {
    expect(() => chatRequest([message("Hi")], { format })).toThrow(/Mend it, or choose another format/);
  });
});
