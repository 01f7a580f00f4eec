import { describe, expect, test } from "vitest";
import type { ChatMessage } from "../../../src/engine/protocol/generation.ts";
import { messagesForTemplate, traitsOf, withJsonCalls } from "../../../src/inference/chat-template.ts";

test("a template belongs to a family if it contains the family's strings in order", () => {
  expect(traitsOf("a [TOOL_CALLS] b [CALL_ID] c [ARGS] d").calls).toBeDefined();
  expect(traitsOf("a [ARGS] b [TOOL_CALLS] c [CALL_ID] d")).toEqual({});
  expect(traitsOf("{{ messages }}")).toEqual({});
  expect(traitsOf(undefined)).toEqual({});
});

test("a long template that almost matches a family is searched once", () => {
  expect(traitsOf("[TOOL_CALLS]".repeat(10_000) + "[CALL_ID]".repeat(10_000))).toEqual({});
});

const fittingMessagesCall = (id: string) => ({ id, name: `do_${id}`, arguments: "{}" });
const text = (words: string): ChatMessage["content"] => [{ type: "text", text: words }];
const result = (id: string): ChatMessage => ({ role: "tool", content: text(`of ${id}`), toolCallId: id });
const user: ChatMessage = { role: "user", content: text("hi") };

/** Describes each message by its role, text and call ids. */
function shown(messages: readonly ChatMessage[]): string[] {
  return messages.map(({ role, content, toolCalls = [] }) => {
    const words = content.map((part) => (part.type === "text" ? part.text : "image"));
    return [role, ...words, ...toolCalls.map(({ id }) => `calls ${id}`)].join(" ");
  });
}

function fit(messages: readonly ChatMessage[]): string[] {
  return shown(messagesForTemplate(messages, { oneCallPerMessage: true }));
}

describe("a template that renders one call per message", () => {
  test("gets several calls as several messages, each followed by its result", () => {
    const asked: ChatMessage = {
      role: "assistant",
      content: text("I look"),
      toolCalls: [fittingMessagesCall("a"), fittingMessagesCall("b")],
    };
    expect(fit([user, asked, result("b"), result("a"), user])).toEqual([
      "user hi",
      "assistant I look calls a",
      "tool of a",
      "assistant calls b",
      "tool of b",
      "user hi",
    ]);
  });

  test("gets calls without results as well", () => {
    const asked: ChatMessage = {
      role: "assistant",
      content: [],
      toolCalls: [fittingMessagesCall("a"), fittingMessagesCall("b")],
    };
    expect(fit([asked, user])).toEqual(["assistant calls a", "assistant calls b", "user hi"]);
  });
});

test("a continued message begins with the template's markup of text", () => {
  const begun: ChatMessage = { role: "assistant", content: text("It is") };
  expect(shown(messagesForTemplate([user, begun], { textStart: "<text>" }))).toEqual([
    "user hi",
    "assistant <text>It is",
  ]);
  expect(shown(messagesForTemplate([begun, user], { textStart: "<text>" }))).toEqual([
    "assistant It is",
    "user hi",
  ]);
});

test("an empty assistant message at the end is left out", () => {
  expect(messagesForTemplate([user, { role: "assistant", content: text("") }], {})).toEqual([user]);
  const thoughtful: ChatMessage = { role: "assistant", content: [], reasoning: "hm" };
  expect(messagesForTemplate([user, thoughtful], {})).toEqual([user, thoughtful]);
});

test("other templates get the messages unchanged", () => {
  const messages = [
    user,
    {
      role: "assistant" as const,
      content: [],
      toolCalls: [fittingMessagesCall("a"), fittingMessagesCall("b")],
    },
  ];
  expect(messagesForTemplate(messages, traitsOf("{{ messages }}"))).toBe(messages);
});

test.each([
  ["none", "", "{}"],
  ["blank ones", " \n", "{}"],
  ["an object", '{"a": 1}', '{"a": 1}'],
  ["what the length has cut off", '{"city": "Par', '"{\\"city\\": \\"Par"'],
])("arguments that are %s become JSON", (_, written, read) => {
  const call = { id: "c", name: "f", arguments: written };
  const [message] = withJsonCalls([{ role: "assistant", content: [], toolCalls: [call] }]);
  expect(message?.toolCalls).toEqual([{ ...call, arguments: read }]);
});
