import { describe, expect, test } from "vitest";
import type { ChatMessage } from "../../../../src/engine/protocol/generation.ts";
import { renderTools } from "../../../../src/inference/tool-calls/tool-prompt.ts";

const FORMAT = {
  style: "json",
  callStart: "<call>",
  callEnd: "</call>",
  resultStart: "<result>",
  resultEnd: "</result>",
};
const TOOLS = [{ name: "add", description: "Adds.", parameters: { type: "object" } }, { name: "now" }];

const text = (role: ChatMessage["role"], words: string): ChatMessage => ({
  role,
  content: [{ type: "text", text: words }],
});
const joined = (message: ChatMessage | undefined): string =>
  (message?.content ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");

describe("renderTools", () => {
  test("describes the tools and the format of a call in the system message", () => {
    const [system, user] = renderTools(
      [text("system", "Be kind."), text("user", "1+1?")],
      TOOLS,
      "auto",
      FORMAT,
    );
    expect(joined(system)).toContain("Be kind.");
    expect(joined(system)).toContain('{"name":"add","description":"Adds.","parameters":{"type":"object"}}');
    expect(joined(system)).toContain('<call>{"name": "…", "arguments": {…}}</call>');
    expect(user?.role).toBe("user");
  });

  test("adds a system message if there is none, unless no call is allowed", () => {
    expect(renderTools([text("user", "hi")], TOOLS, "auto", FORMAT)[0]?.role).toBe("system");
    expect(renderTools([text("user", "hi")], TOOLS, "none", FORMAT)).toEqual([text("user", "hi")]);
    expect(renderTools([text("user", "hi")], [], "auto", FORMAT)).toEqual([text("user", "hi")]);
  });

  test("states which call is required", () => {
    expect(joined(renderTools([text("user", "hi")], TOOLS, { name: "now" }, FORMAT)[0])).toContain("now now");
  });

  test("renders calls and their results as text, with consecutive results in one message", () => {
    const messages: ChatMessage[] = [
      text("user", "1+1?"),
      {
        role: "assistant",
        content: [],
        toolCalls: [
          { id: "1", name: "add", arguments: '{"a":1}' },
          { id: "2", name: "now", arguments: "" },
        ],
      },
      { ...text("tool", "2"), toolCallId: "1" },
      { ...text("tool", "noon"), toolCallId: "2" },
      text("user", "thanks"),
    ];
    const rendered = renderTools(messages, [], "none", FORMAT);
    expect(rendered.map(({ role }) => role)).toEqual(["user", "assistant", "user", "user"]);
    expect(joined(rendered[1])).toBe(
      '<call>{"name": "add", "arguments": {"a":1}}</call>\n<call>{"name": "now", "arguments": {}}</call>',
    );
    expect(rendered[1]).not.toHaveProperty("toolCalls");
    expect(rendered[2]?.content).toEqual([
      { type: "text", text: "<result>2</result>" },
      { type: "text", text: "<result>noon</result>" },
    ]);
  });

  test("does not modify its input", () => {
    const messages = [text("user", "hi"), { ...text("tool", "2"), toolCallId: "1" }, text("tool", "3")];
    const before = structuredClone(messages);
    renderTools(messages, TOOLS, "auto", FORMAT);
    expect(messages).toEqual(before);
  });
});
