import { expect, test } from "vitest";
import type { ChatMessage } from "../../../../src/engine/protocol/generation.ts";
import { withShortCallIds } from "../../../../src/inference/tool-calls/tool-call-ids.ts";

const MISTRAL =
  "{%- if tool_call.id is not defined or tool_call.id|length != 9 %}{{ raise_exception('no') }}";
const MESSAGES: readonly ChatMessage[] = [
  { role: "user", content: [] },
  {
    role: "assistant",
    content: [],
    toolCalls: [
      { id: "call_0123456789abcdef", name: "f", arguments: "{}" },
      { id: "abcDEF123", name: "g", arguments: "{}" },
    ],
  },
  { role: "tool", content: [], toolCallId: "call_0123456789abcdef" },
];

test("a template that requires ids of nine characters gets them, the same for a call and its result", () => {
  const [, assistant, result] = withShortCallIds(MESSAGES, MISTRAL);
  const [first, second] = assistant?.toolCalls ?? [];
  expect(first?.id).toMatch(/^[a-z0-9]{9}$/);
  expect(result?.toolCallId).toBe(first?.id);
  expect(second?.id).toBe("abcDEF123");
});

test("any other template gets the ids unchanged", () => {
  expect(withShortCallIds(MESSAGES, "{{ messages }}")).toEqual(MESSAGES);
  expect(withShortCallIds(MESSAGES, undefined)).toEqual(MESSAGES);
});
