import { describe, expect, test } from "vitest";
import type { GenerationEvent } from "../../../../src/engine/protocol/generation.ts";
import { PLAIN_TEXT, THINKING_AND_TOOLS } from "../recorded-events.ts";
import { testApp } from "../../../support/test-app.ts";
import { BASE, clientOf, messages, PATH } from "./message-client.ts";

/** Returns the tool definitions that the model gets. */
async function toolsOf(...tools: object[]): Promise<unknown> {
  const all = testApp({ events: PLAIN_TEXT });
  const answer = await all.post(PATH, { ...BASE, tools });
  expect(await answer.json()).toMatchObject({ type: "message" });
  const { input } = all.lastRequest();
  return input.kind === "chat" && input.tools;
}

const commands = (...names: string[]) => ({
  name: expect.any(String),
  description: expect.any(String),
  parameters: { type: "object", properties: { command: { enum: names } } },
});

describe("a client-side tool", () => {
  test("has a built-in schema by type: bash", async () => {
    expect(await toolsOf({ type: "bash_20250124", name: "bash" })).toEqual([
      {
        name: "bash",
        description: expect.any(String),
        parameters: {
          type: "object",
          properties: {
            command: expect.objectContaining({ type: "string" }),
            restart: expect.objectContaining({ type: "boolean" }),
          },
          required: [],
          additionalProperties: false,
        },
      },
    ]);
  });

  test("has a built-in schema by type: text_editor, which depends on the version", async () => {
    expect(
      await toolsOf(
        { type: "text_editor_20250124", name: "str_replace_editor" },
        { type: "text_editor_20250728", name: "str_replace_based_edit_tool", max_characters: 10_000 },
      ),
    ).toMatchObject([
      {
        name: "str_replace_editor",
        parameters: {
          properties: { command: { enum: ["view", "create", "str_replace", "insert", "undo_edit"] } },
        },
      },
      {
        name: "str_replace_based_edit_tool",
        parameters: {
          properties: {
            command: { enum: ["view", "create", "str_replace", "insert"] },
            insert_text: { type: "string" },
          },
        },
      },
    ]);
  });

  test("has a built-in schema by type: memory", async () => {
    expect(await toolsOf({ type: "memory_20250818", name: "memory" })).toMatchObject([
      commands("view", "create", "str_replace", "insert", "delete", "rename"),
    ]);
  });

  test("has a built-in schema by type: computer, with the display size", async () => {
    const display = { display_width_px: 1024, display_height_px: 768 };
    expect(await toolsOf({ type: "computer_20251124", name: "computer", ...display })).toMatchObject([
      {
        description: expect.stringContaining("1024 by 768 pixels"),
        parameters: { properties: { action: { enum: expect.arrayContaining(["zoom", "scroll"]) } } },
      },
    ]);
    expect(await toolsOf({ type: "computer_20241022", name: "computer", ...display })).toMatchObject([
      { parameters: { properties: { action: { enum: expect.not.arrayContaining(["zoom", "scroll"]) } } } },
    ]);
  });

  test("is called like any other tool", async () => {
    const call = JSON.stringify({ command: "ls" });
    const events = THINKING_AND_TOOLS.flatMap((event): GenerationEvent[] => {
      if (event.type === "tool-call-start") return event.index === 0 ? [{ ...event, name: "bash" }] : [];
      if (event.type !== "tool-call-delta") return [event];
      return event.arguments === '{"city":' ? [{ ...event, arguments: call }] : [];
    });
    const message = await clientOf(testApp({ events }))
      .messages.stream({ ...BASE, messages, tools: [{ type: "bash_20250124", name: "bash" }] })
      .finalMessage();
    expect(message.content.at(-1)).toMatchObject({
      type: "tool_use",
      name: "bash",
      input: { command: "ls" },
    });
  });

  test("of type custom has its own schema, and may have fields that are ignored", async () => {
    const more = {
      strict: true,
      defer_loading: true,
      cache_control: { type: "ephemeral" },
      input_examples: [{}],
      eager_input_streaming: true,
      allowed_callers: ["direct"],
    };
    const tool = { name: "now", description: "Tells.", input_schema: { type: "object" } };
    const definition = { name: "now", description: "Tells.", parameters: { type: "object" } };
    expect(await toolsOf({ ...tool, ...more })).toEqual([{ ...definition, strict: true }]);
    expect(await toolsOf({ ...tool, type: "custom" })).toEqual([definition]);
  });

  test.for([
    "web_search_20250305",
    "code_execution_20250825",
    "computer_toolset_20260801",
    "constructor_20250101",
  ])("rejects %s with an explanation", async (type) => {
    const answer = await testApp().post(PATH, { ...BASE, tools: [{ type, name: "some" }] });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      error: {
        message: `tools.0.type: is not supported: "${type}" is not a client-side tool with a single function; leave it out, or send a custom tool with an input_schema`,
      },
    });
  });
});
