import { expect, test } from "vitest";
import { sseEvents, testApp } from "../../../support/test-app.ts";
import { PLAIN_TEXT } from "../recorded-events.ts";
import { BASE, PATH } from "./message-client.ts";

const HEADER = "x-daybreak-warning";
const CLEAR_TOOLS = { type: "clear_tool_uses_20250919", keep: { type: "tool_uses", value: 3 } };
const post = async (body: object) => await testApp({ events: PLAIN_TEXT }).post(PATH, { ...BASE, ...body });

test.each([
  ["results of tools", CLEAR_TOOLS],
  ["all but the last thinking", { type: "clear_thinking_20251015" }],
  ["a summary", { type: "compact_20260112" }],
])("warns about a context edit that is not applied: %s", async (_what, edit) => {
  const answer = await post({
    context_management: { edits: [{ type: "clear_thinking_1", keep: "all" }, edit] },
  });
  expect(answer.headers.get(HEADER)).toMatch(
    new RegExp(`^context_management is not supported: ${edit.type} was not applied`),
  );
  expect(await answer.json()).toMatchObject({ context_management: { applied_edits: [] } });
});

test.each([
  ["keep all thinking", { edits: [{ type: "clear_thinking_20251015", keep: "all" }] }],
  ["keep it in the longer form", { edits: [{ type: "clear_thinking_20251015", keep: { type: "all" } }] }],
  ["none", { edits: [] }],
  ["something else", { edits: 7 }],
])(
  "reports that no edit was applied, without a warning if it would remove nothing: %s",
  async (_what, asked) => {
    const answer = await post({ context_management: asked });
    expect(answer.headers.get(HEADER)).toBeNull();
    expect(await answer.json()).toMatchObject({ context_management: { applied_edits: [] } });
  },
);

test("a stream reports applied edits at its end, and only if the request has context_management", async () => {
  const streamed = await sseEvents(
    await post({ stream: true, context_management: { edits: [CLEAR_TOOLS] } }),
  );
  expect(streamed.map(({ data }): unknown => JSON.parse(data))).toContainEqual(
    expect.objectContaining({ type: "message_delta", context_management: { applied_edits: [] } }),
  );
  expect(await (await post({})).json()).not.toHaveProperty("context_management");
});

test("counts the same prompt tokens with and without context edits", async () => {
  const app = testApp({
    events: [{ type: "start" }, { type: "prompt-progress", processed: 7, total: 7 }, ...PLAIN_TEXT],
  });
  const body = { messages: BASE.messages, context_management: { edits: [CLEAR_TOOLS] } };
  const answer = await app.post(`${PATH}/count_tokens`, body);
  expect(await answer.json()).toEqual({
    input_tokens: 7,
    context_management: { original_input_tokens: 7 },
  });
});
