import type { ChatCompletionCreateParamsNonStreaming } from "openai/resources/chat/completions";
import { describe, expect, test } from "vitest";
import { toChatRequests } from "../../../../../src/api/openai/chat-request.ts";
import {
  type ChatCompletionRequest,
  chatCompletionRequestSchema,
} from "../../../../../src/api/openai/chat-schema.ts";
import { chatCompletionSchema } from "../../../../../src/api/openai/chat-answer.ts";
import { compileGrammar } from "../../../../../src/grammar/grammar-work.ts";
import { prepareRequest } from "../../../../../src/inference/prepare-request.ts";
import { sseEvents, testApp } from "../../../../support/test-app.ts";
import { chunksOf, clientOf, messages, PATH, TOOL } from "../chat-client.ts";
import { CUSTOM_CALLS } from "./custom-events.ts";
import { PATCH_GRAMMAR } from "../../../../support/patch-grammar.ts";

const APPLY = {
  type: "custom" as const,
  custom: {
    name: "apply_patch",
    description: "Edits files.",
    format: {
      type: "grammar" as const,
      grammar: { syntax: "lark" as const, definition: PATCH_GRAMMAR },
    },
  },
};
const BODY: ChatCompletionCreateParamsNonStreaming = { model: "fake", messages, tools: [APPLY, TOOL] };

function requestOf(fields: object) {
  const body: ChatCompletionRequest = chatCompletionRequestSchema.parse({ messages, ...fields });
  const [request] = toChatRequests(body);
  return request!;
}

const prepared = async (fields: object) =>
  await prepareRequest(requestOf(fields), async (work) => compileGrammar(work));

describe("a custom tool of chat completions", () => {
  test("becomes a function with one text argument", async () => {
    const { input, warnings } = await prepared({
      tools: [APPLY, { type: "custom", custom: { name: "plain" } }, TOOL],
    });
    expect(input).toMatchObject({
      tools: [
        {
          name: "apply_patch",
          description: expect.stringMatching(/^Edits files\.\n\nThe input has to match/),
          parameters: { properties: { input: { type: "string", pattern: expect.any(String) } } },
        },
        {
          name: "plain",
          parameters: {
            properties: { input: expect.not.objectContaining({ pattern: expect.anything() }) },
            required: ["input"],
          },
        },
        { name: "get_weather" },
      ],
    });
    expect(warnings).toEqual([]);
  });

  test("causes a warning if its grammar cannot be enforced", async () => {
    const format = { type: "grammar", grammar: { syntax: "regex", definition: "(?=a)a" } };
    const { warnings } = await prepared({ tools: [{ type: "custom", custom: { name: "a", format } }] });
    expect(warnings).toEqual([expect.stringContaining('The grammar of the tool "a" has a lookaround')]);
  });

  test("can be selected by tool_choice and allowed_tools", () => {
    const named = { type: "custom", custom: { name: "apply_patch" } };
    expect(requestOf({ tools: [APPLY, TOOL], tool_choice: named }).input).toMatchObject({
      toolChoice: { name: "apply_patch" },
    });
    const other = { type: "function", function: { name: "get_weather" } };
    const allowed = (...tools: object[]) => ({
      tools: [APPLY, TOOL],
      tool_choice: { type: "allowed_tools", allowed_tools: { mode: "required", tools } },
    });
    expect(requestOf(allowed(named)).input).toMatchObject({
      tools: [{ name: "apply_patch" }],
      toolChoice: "required",
    });
    expect(requestOf(allowed(named, other)).input).toMatchObject({ tools: [{}, {}] });
  });

  test("is converted in earlier calls like any other call", () => {
    const call = { id: "c1", type: "custom", custom: { name: "apply_patch", input: 'a "b"\n' } };
    const history = [
      ...messages,
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "c1", content: "Done." },
    ];
    expect(requestOf({ messages: history, tools: [APPLY] }).input).toMatchObject({
      messages: [
        {},
        {
          role: "assistant",
          toolCalls: [{ id: "c1", name: "apply_patch", arguments: '{"input":"a \\"b\\"\\n"}' }],
        },
        { role: "tool", toolCallId: "c1" },
      ],
    });
  });

  test("is called with its input", async () => {
    const all = testApp({ events: CUSTOM_CALLS });
    const answer = await all.post(PATH, BODY);
    const { choices } = chatCompletionSchema.strict().parse(await answer.json());
    expect(choices).toMatchObject([
      {
        message: {
          content: null,
          tool_calls: [
            { id: "call_a", type: "custom", custom: { name: "apply_patch", input: "one\n“two”" } },
            {
              id: "call_b",
              type: "function",
              function: { name: "get_weather", arguments: '{"city":"Rome"}' },
            },
            { id: "call_c", type: "custom", custom: { name: "apply_patch", input: "loose" } },
          ],
        },
        finish_reason: "tool_calls",
      },
    ]);
    const [choice] = (await clientOf(all).chat.completions.create(BODY)).choices;
    const back = { ...BODY, messages: [...messages, choice!.message] };
    expect((await all.post(PATH, back)).status).toBe(200);
  });

  test("streams its input in deltas, for each choice", async () => {
    const body = { ...BODY, stream: true, n: 2 };
    const events = await sseEvents(await testApp({ events: CUSTOM_CALLS }).post(PATH, body));
    for (const index of [0, 1]) {
      const calls = chunksOf(events).flatMap(({ choices }) =>
        choices.flatMap((choice) => (choice.index === index ? (choice.delta.tool_calls ?? []) : [])),
      );
      expect(calls).toEqual([
        { index: 0, id: "call_a", type: "custom", custom: { name: "apply_patch", input: "" } },
        { index: 0, custom: { input: "one\n" } },
        { index: 0, custom: { input: "“two”" } },
        { index: 1, id: "call_b", type: "function", function: { name: "get_weather", arguments: "" } },
        { index: 1, function: { arguments: '{"city":"Rome"}' } },
        { index: 2, id: "call_c", type: "custom", custom: { name: "apply_patch", input: "" } },
        { index: 2, custom: { input: "loose" } },
      ]);
    }
  });
});

test("a tool of an unknown type is rejected", async () => {
  const answer = await testApp().post(PATH, { ...BODY, tools: [{ type: "mcp" }] });
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({
    error: { message: expect.stringContaining('only tools of type "function" or "custom" are supported') },
  });
});
