import type { ResponseInputItem } from "openai/resources/responses/responses";
import { describe, expect, test } from "vitest";
import type { GenerationEvent } from "../../../../../src/engine/protocol/generation.ts";
import { testApp } from "../../../../support/test-app.ts";
import { THINKING_AND_TOOLS } from "../../recorded-events.ts";
import { CUSTOM_CALLS } from "../custom-tools/custom-events.ts";
import { ACTION, body, BUILT_IN, BUILT_IN_CALLS, EXEC, UPDATE, WEATHER } from "./client-run-requests.ts";
import { clientOf } from "../chat-client.ts";

describe("output items can be sent back as input, with the outputs of their calls", () => {
  const outputs: readonly [
    string,
    readonly GenerationEvent[],
    object,
    readonly ResponseInputItem[],
    unknown,
  ][] = [
    [
      "thoughts, text and functions",
      THINKING_AND_TOOLS,
      { tools: [WEATHER] },
      [
        { type: "function_call_output", call_id: "call_a", output: "Sunny." },
        { type: "function_call_output", call_id: "call_b", output: "Noon." },
      ],
      [
        { role: "user" },
        {
          role: "assistant",
          reasoning: "The user wants the weather.",
          content: [{ text: "Let me look — “ok”." }],
          toolCalls: [
            { id: "call_a", name: "get_weather", arguments: '{"city":"Köln"}' },
            { id: "call_b", name: "get_time", arguments: "{}" },
          ],
        },
        { role: "tool", content: [{ text: "Sunny." }], toolCallId: "call_a" },
        { role: "tool", content: [{ text: "Noon." }], toolCallId: "call_b" },
      ],
    ],
    [
      "custom tools",
      CUSTOM_CALLS,
      {},
      [{ type: "custom_tool_call_output", call_id: "call_a", output: "Done." }],
      [
        { role: "user" },
        {
          role: "assistant",
          toolCalls: [
            { id: "call_a", name: "apply_patch", arguments: '{"input":"one\\n“two”"}' },
            { id: "call_b", name: "get_weather", arguments: '{"city":"Rome"}' },
            { id: "call_c", name: "apply_patch", arguments: '{"input":"loose"}' },
          ],
        },
        { role: "tool", content: [{ text: "Done." }], toolCallId: "call_a" },
      ],
    ],
    [
      "built-in tools",
      BUILT_IN_CALLS,
      { tools: BUILT_IN },
      [
        {
          type: "shell_call_output",
          call_id: "call_0",
          output: [
            { stdout: "a.ts\n", stderr: "", outcome: { type: "exit", exit_code: 0 } },
            { stdout: "", stderr: "slow", outcome: { type: "timeout" } },
          ],
        },
        { type: "local_shell_call_output", id: "call_1", output: "a.ts" },
        { type: "apply_patch_call_output", call_id: "call_2", status: "failed", output: "no such file" },
        { type: "apply_patch_call_output", call_id: "call_3", status: "completed" },
      ],
      [
        { role: "user" },
        {
          role: "assistant",
          toolCalls: [
            { id: "call_0", name: "shell", arguments: JSON.stringify(ACTION) },
            { id: "call_1", name: "local_shell", arguments: JSON.stringify(EXEC) },
            { id: "call_2", name: "apply_patch", arguments: JSON.stringify(UPDATE) },
            {
              id: "call_3",
              name: "apply_patch",
              arguments: '{"type":"delete_file","path":"b.ts","diff":""}',
            },
          ],
        },
        {
          role: "tool",
          content: [{ text: "a.ts\n\n[exit code 0]\nslow\n[timed out]" }],
          toolCallId: "call_0",
        },
        { role: "tool", content: [{ text: "a.ts" }], toolCallId: "call_1" },
        { role: "tool", content: [{ text: "failed: no such file" }], toolCallId: "call_2" },
        { role: "tool", content: [{ text: "completed" }], toolCallId: "call_3" },
      ],
    ],
  ];

  test.for(outputs)("%s", async ([, events, fields, results, messages]) => {
    const all = testApp({ events });
    const client = clientOf(all);
    const request = { ...body, ...fields };
    const first = await client.responses.create(request);
    const requested = () => {
      const { input } = all.lastRequest();
      return input.kind === "chat" && input.messages;
    };
    const sent: ResponseInputItem[] = JSON.parse(JSON.stringify(first.output));
    await client.responses.create({
      ...request,
      input: [{ role: "user", content: "hi" }, ...sent, ...results],
    });
    expect(requested()).toMatchObject(Object(messages));
    await client.responses.create({ ...request, input: [...results], previous_response_id: first.id });
    expect(requested()).toMatchObject(Object(messages));
    const references = first.output.map(({ id }): ResponseInputItem => ({ id: String(id) }));
    const third = await client.responses.create({
      ...request,
      input: [{ role: "user", content: "hi" }, ...references, ...results],
    });
    expect(requested()).toMatchObject(Object(messages));
    const items = await client.responses.inputItems.list(third.id, { order: "asc" });
    expect(items.data.slice(1).map(({ type }) => type)).toEqual(
      [...first.output, ...results].map(({ type }) => type),
    );
  });
});
