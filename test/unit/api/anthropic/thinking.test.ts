import { describe, expect, test } from "vitest";
import { THINKING_AND_TOOLS } from "../recorded-events.ts";
import { sseEvents, testApp, type TestApp } from "../../../support/test-app.ts";
import { BASE, clientOf, messages, PATH } from "./message-client.ts";

const OMITTED = { thinking: { type: "adaptive" as const, display: "omitted" as const } };

function inputOf(all: TestApp): unknown {
  return all.lastRequest().input;
}

describe("thinking with display omitted", () => {
  test("returns a signature without text, streamed or not, and the model still thinks", async () => {
    const all = testApp({ events: THINKING_AND_TOOLS });
    const client = clientOf(all);
    const complete = await client.messages.create({ ...BASE, ...OMITTED });
    expect(inputOf(all)).toMatchObject({ thinking: true });
    const streamed = await client.messages.stream({ ...BASE, ...OMITTED }).finalMessage();
    for (const { content } of [complete, streamed]) {
      expect(content[0]).toEqual({ type: "thinking", thinking: "", signature: expect.stringMatching(/./) });
    }
    const events = await sseEvents(await all.post(PATH, { ...BASE, ...OMITTED, stream: true }));
    expect(events.filter(({ data }) => data.includes("thinking_delta"))).toEqual([]);
  });

  test("is restored for the model from the signature", async () => {
    const all = testApp({ events: THINKING_AND_TOOLS });
    const { content } = await clientOf(all).messages.create({ ...BASE, ...OMITTED });
    const answer = { role: "assistant", content };
    await all.post(PATH, { ...BASE, messages: [...messages, answer, ...messages] });
    expect(inputOf(all)).toMatchObject({
      messages: [{ role: "user" }, { reasoning: "The user wants the weather." }, { role: "user" }],
    });
  });

  test("ignores signatures of other servers", async () => {
    const all = testApp();
    const content = [
      { type: "thinking", thinking: "", signature: "EqQBCgIYAhIM" },
      { type: "text", text: "Hi." },
    ];
    await all.post(PATH, { ...BASE, messages: [...messages, { role: "assistant", content }, ...messages] });
    expect(inputOf(all)).toMatchObject({ messages: [{}, { reasoning: undefined }, {}] });
  });
});

test.for([
  { type: "adaptive", display: "summarized" },
  { type: "enabled", budget_tokens: 1024, display: "summarized" },
  { type: "enabled", budget_tokens: 1024, display: null },
] as const)("returns the thinking text with %j", async (thinking) => {
  const all = testApp({ events: THINKING_AND_TOOLS });
  const { content } = await clientOf(all).messages.create({ ...BASE, thinking });
  expect(inputOf(all)).toMatchObject({ thinking: true });
  expect(content[0]).toMatchObject({ type: "thinking", thinking: "The user wants the weather." });
});

test("thinking type between_tools disables thinking", async () => {
  const all = testApp();
  await all.post(PATH, { ...BASE, thinking: { type: "between_tools" }, output_config: { effort: "low" } });
  expect(inputOf(all)).toMatchObject({ thinking: false, templateVariables: { reasoning_effort: "low" } });
});
