import { describe, expect, test } from "vitest";
import { checkCallDepths, checkRequestLimits, checkTextLength } from "../../../src/engine/request-limits.ts";
import type { ChatMessage } from "../../../src/engine/protocol/generation.ts";
import { chatRequest, promptRequest } from "../../support/engine-fixture.ts";

const CONTEXT = 4096;
const LIMITS = { contextSize: CONTEXT, slots: 4 };

function nested(depth: number): Record<string, unknown> {
  let schema: Record<string, unknown> = { type: "string" };
  for (let level = 0; level < depth; level += 1) schema = { type: "array", items: schema };
  return schema;
}

describe("a request that would block the engine", () => {
  test.each([
    [
      "a schema of 2,000 levels",
      promptRequest("x", { format: { type: "json_schema", schema: nested(2000) } }),
    ],
    [
      "a schema deeper than any stack",
      promptRequest("x", { format: { type: "json_schema", schema: nested(200_000) } }),
    ],
    [
      "a schema of 100,000 values",
      promptRequest("x", {
        format: { type: "json_schema", schema: { enum: Array.from({ length: 100_000 }, (_, at) => at) } },
      }),
    ],
    [
      "tool parameters of 2,000 levels",
      chatRequest("x", {}, { tools: [{ name: "deep", parameters: nested(2000) }] }),
    ],
    [
      "template variables of 2,000 levels",
      chatRequest("x", {}, { templateVariables: { deep: nested(2000) } }),
    ],
    [
      "a schema of a megabyte of text",
      promptRequest("x", { format: { type: "json_schema", schema: { description: "x".repeat(1 << 20) } } }),
    ],
    [
      "a grammar of a megabyte",
      promptRequest("x", { format: { type: "grammar", grammar: "x".repeat(1 << 20) } }),
    ],
    ["an unknown slot", promptRequest("x", { slot: 4 })],
    ["cache reuse for a model that was loaded without it", promptRequest("x", { cacheReuse: 1 })],
  ])("is rejected for %s", (_, request) => {
    expect(() => checkRequestLimits(request, LIMITS)).toThrow(
      expect.objectContaining({ code: "invalid_parameter", param: expect.any(String) }),
    );
  });

  test.each([
    ["a prompt", promptRequest("x".repeat(20_000_000))],
    ["a message", chatRequest("x".repeat(20_000_000))],
  ])("is rejected for %s of 20 MB, with both numbers in the message", (_, request) => {
    expect(() => checkRequestLimits(request, LIMITS)).toThrow(
      expect.objectContaining({
        code: "context_length_exceeded",
        message: expect.stringMatching(/20000000 characters.* 4096 tokens/),
      }),
    );
  });
});

test("cache reuse may be turned off, and turned on if the model was loaded with it", () => {
  expect(() => checkRequestLimits(promptRequest("x", { cacheReuse: 0 }), LIMITS)).not.toThrow();
  const moved = promptRequest("x", { cacheReuse: 8 });
  expect(() => checkRequestLimits(moved, { ...LIMITS, cacheReuse: 256 })).not.toThrow();
});

test("ordinary requests pass, also long ones for a small context, which the engine checks", () => {
  const format = { type: "json_schema", schema: nested(20) } as const;
  expect(() =>
    checkRequestLimits(chatRequest("x".repeat(50_000), { format }), { ...LIMITS, contextSize: 16 }),
  ).not.toThrow();
  expect(() => checkTextLength(64 * CONTEXT, CONTEXT)).not.toThrow();
});

test("an earlier tool call with arguments nested 4,000 levels deep is rejected with its path", () => {
  const deep = '{"a":'.repeat(4000) + "1" + "}".repeat(4000);
  const messages: ChatMessage[] = [
    { role: "user", content: [] },
    { role: "assistant", content: [], toolCalls: [{ id: "1", name: "f", arguments: deep }] },
  ];
  expect(() => checkCallDepths({ kind: "chat", messages })).toThrow(
    expect.objectContaining({ code: "invalid_json", param: "messages.1.tool_calls.0" }),
  );
});
