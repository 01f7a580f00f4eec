import { expect, test } from "vitest";
import type { GenerationEvent } from "../../../../src/engine/protocol/generation.ts";
import { DONE } from "../../../support/fake-engine.ts";
import { sseEvents, testApp } from "../../../support/test-app.ts";
import { chunksOf, clientOf, messages, PATH, TOOL } from "./chat-client.ts";

const CALL: readonly GenerationEvent[] = [
  { type: "start" },
  { type: "tool-call-start", index: 0, id: "1", name: "get_weather" },
  { type: "tool-call-delta", index: 0, arguments: '{"city":' },
  { type: "tool-call-delta", index: 0, arguments: '"Rome"}' },
  { ...DONE, reason: "tool_calls" },
];
const functions = [TOOL.function];
const request = { model: "fake", messages, functions };

test("functions become tools with at most one call, returned as function_call", async () => {
  const all = testApp({ events: CALL });
  const answer = await clientOf(all).chat.completions.create(request);
  expect(all.lastRequest().input).toMatchObject({ tools: [TOOL.function], parallelToolCalls: false });
  expect(answer.choices[0]).toMatchObject({
    message: { content: null, function_call: { name: "get_weather", arguments: '{"city":"Rome"}' } },
    finish_reason: "function_call",
  });
  expect(answer.choices[0]?.message).not.toHaveProperty("tool_calls");
});

test("streams function_call", async () => {
  const answer = await testApp({ events: CALL }).post(PATH, { ...request, stream: true });
  const choices = chunksOf(await sseEvents(answer)).flatMap((chunk) => chunk.choices);
  expect(choices.map(({ delta }) => delta.function_call).filter(Boolean)).toEqual([
    { name: "get_weather", arguments: "" },
    { arguments: '{"city":' },
    { arguments: '"Rome"}' },
  ]);
  expect(choices.at(-1)?.finish_reason).toBe("function_call");
});

test("a request without functions gets tool_calls", async () => {
  const answer = await clientOf(testApp({ events: CALL })).chat.completions.create({
    model: "fake",
    messages,
    tools: [TOOL],
  });
  expect(answer.choices[0]).toMatchObject({
    message: { tool_calls: [{ function: { name: "get_weather" } }] },
    finish_reason: "tool_calls",
  });
});

test.each([
  ["none", { toolChoice: "none", tools: [] }],
  ["auto", { toolChoice: "auto", tools: [TOOL.function] }],
] as const)("function_call %s becomes the tool choice of that name", async (choice, expected) => {
  const all = testApp({ events: CALL });
  await all.post(PATH, { ...request, function_call: choice });
  expect(all.lastRequest().input).toMatchObject(expected);
});

test("function_call with a name requires that call", async () => {
  const all = testApp({ events: CALL });
  await all.post(PATH, { ...request, function_call: { name: "get_weather" } });
  expect(all.lastRequest().format).toMatchObject({
    type: "grammar",
    grammar: expect.stringContaining(String.raw`\"get_weather\"`),
  });
});

test("converts earlier function calls and results to tool calls and results", async () => {
  const all = testApp({ events: CALL });
  await clientOf(all).chat.completions.create({
    model: "fake",
    functions,
    messages: [
      ...messages,
      { role: "assistant", content: null, function_call: { name: "get_weather", arguments: "{}" } },
      { role: "function", name: "get_weather", content: "sunny" },
    ],
  });
  const { input } = all.lastRequest();
  const [, call, result] = input.kind === "chat" ? input.messages : [];
  expect(call?.toolCalls).toMatchObject([{ name: "get_weather", arguments: "{}" }]);
  expect(result).toMatchObject({ role: "tool", content: [{ type: "text", text: "sunny" }] });
  expect(result?.toolCallId).toBe(call?.toolCalls?.[0]?.id);
});

test("rejects functions combined with tools", async () => {
  const answer = await testApp().post(PATH, { ...request, tools: [TOOL] });
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ error: { param: "functions" } });
});
