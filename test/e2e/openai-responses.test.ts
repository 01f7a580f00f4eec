import OpenAI, { APIUserAbortError, BadRequestError, NotFoundError } from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { toResponseInputItems } from "openai/lib/responses/ResponseInputItems";
import type { ResponseInput } from "openai/resources/responses/responses";
import { beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { activeRequests } from "../support/active-requests.ts";
import {
  ENDLESS_OBJECT,
  GREEDY,
  QUESTION_FOR_WEATHER,
  QUESTION_TO_THINK_ABOUT,
} from "../support/certain-requests.ts";
import { sharedDaemon } from "../support/shared-daemon.ts";
import { PATCH_GRAMMAR } from "../support/patch-grammar.ts";
import type { TestDaemon } from "../support/start-daemon.ts";

const model = "daybreak-mini";
const input = "Hello";
const WEATHER = {
  type: "function" as const,
  name: "get_weather",
  strict: true,
  parameters: {
    type: "object",
    properties: { city: { enum: ["Rome", "Oslo"] } },
    required: ["city"],
    additionalProperties: false,
  },
};
const NOW = {
  ...WEATHER,
  name: "now",
  parameters: { type: "object", properties: {}, additionalProperties: false },
};

const ENDLESS = { format: { type: "json_schema" as const, name: "endless", schema: ENDLESS_OBJECT } };

const customTool = (syntax: "regex" | "lark", definition: string) => ({
  type: "custom" as const,
  name: "write",
  format: { type: "grammar" as const, syntax, definition },
});

let daemon: TestDaemon;
let client: OpenAI;

beforeAll(async () => {
  daemon = await sharedDaemon();
  client = new OpenAI({ baseURL: `${daemon.url}/v1`, apiKey: "any", maxRetries: 0 });
});

describe("responses with the official client", () => {
  test("give the same answer streamed", async () => {
    const body = { model, input, max_output_tokens: 12, ...GREEDY };
    const whole = await client.responses.create(body);
    const stream = client.responses.stream(body);
    let deltas = "";
    stream.on("response.output_text.delta", ({ delta }) => (deltas += delta));
    const streamed = await stream.finalResponse();
    expect(streamed.output_text).toBe(whole.output_text);
    expect(deltas).toBe(whole.output_text);
    expect(streamed.status).toBe(whole.status);
    expect(whole).toMatchObject({ object: "response", model, error: null });
    expect(whole.usage?.output_tokens).toBeLessThanOrEqual(12);
    expect(streamed.usage?.total_tokens).toBe(whole.usage?.total_tokens);
  });

  test("have exact input token counts in advance", async () => {
    const request = { model, input, instructions: "Be brief.", tools: [WEATHER] };
    const { input_tokens: counted } = await client.responses.inputTokens.count(request);
    const { usage } = await client.responses.create({ ...request, max_output_tokens: 1 });
    expect(counted).toBe(usage?.input_tokens);
  });

  test("report that they were cut off", async () => {
    const response = await client.responses.create({ model, input, max_output_tokens: 4, text: ENDLESS });
    expect(response).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
    });
  });

  test("call tools in turn with the full conversation in each request", async () => {
    const tools = [WEATHER, NOW];
    const conversation: ResponseInput = [{ role: "user", content: "Weather and time?" }];
    let length = 0;
    for (const name of ["get_weather", "now"]) {
      const response = await client.responses
        .stream({
          model,
          input: conversation,
          ...GREEDY,
          tools,
          tool_choice: { type: "function", name },
          store: false,
        })
        .finalResponse();
      expect(response.status).toBe("completed");
      const call = response.output.find((item) => item.type === "function_call");
      expect(call?.name).toBe(name);
      conversation.push(...toResponseInputItems(response.output), {
        type: "function_call_output",
        call_id: call!.call_id,
        output: "Sunny at noon.",
      });
      expect(response.usage?.input_tokens).toBeGreaterThan(length);
      length = response.usage!.input_tokens;
    }
    const answer = await client.responses.create({
      model,
      input: conversation,
      tools,
      tool_choice: "none",
      max_output_tokens: 4,
    });
    const { usage: alone } = await client.responses.create({
      model,
      input: "Weather and time?",
      max_output_tokens: 1,
    });
    expect(answer.usage?.input_tokens).toBeGreaterThan(alone!.input_tokens);
    expect(answer.output.some(({ type }) => type === "function_call")).toBe(false);
  });

  test("call a custom tool with text that follows its grammar", async () => {
    const body = {
      model,
      input: "Say hello.",
      ...GREEDY,
      tool_choice: { type: "custom" as const, name: "write" },
    };
    const line = await client.responses
      .stream({ ...body, tools: [customTool("regex", String.raw`"[^ ]{2,4}"\t\\\w{3}`)] })
      .finalResponse();
    expect(line.output).toMatchObject([
      { type: "custom_tool_call", name: "write", input: expect.stringMatching(/^"[^ ]{2,4}"\t\\\w{3}$/) },
    ]);
    const tools = [customTool("lark", PATCH_GRAMMAR)];
    const patch = await client.responses.create({ ...body, tools, max_output_tokens: 80 });
    expect(patch.output).toMatchObject([
      { type: "custom_tool_call", input: expect.stringMatching(/^\*{3} Begin Patch\n\*{3} (?:A|D|U)/) },
    ]);
  });

  test("continue from a stored response with a tool result", async () => {
    const tools = [WEATHER];
    const first = await client.responses.create({
      model,
      input: QUESTION_FOR_WEATHER,
      ...GREEDY,
      tools,
      tool_choice: "required",
    });
    const call = first.output.find((item) => item.type === "function_call");
    expect(JSON.parse(call?.arguments ?? "")).toEqual({ city: expect.stringMatching(/^(Rome|Oslo)$/) });
    const second = await client.responses.create({
      model,
      previous_response_id: first.id,
      input: [{ type: "function_call_output", call_id: call!.call_id, output: "Sunny." }],
      tools,
      max_output_tokens: 4,
    });
    expect(second.usage?.input_tokens).toBeGreaterThan(first.usage!.input_tokens);
    expect((await client.responses.retrieve(first.id)).output).toMatchObject([{ call_id: call!.call_id }]);
    await client.responses.delete(first.id);
    await expect(client.responses.retrieve(first.id)).rejects.toThrow(NotFoundError);
  });

  test("follow a zod schema", async () => {
    const schema = z.object({ colour: z.enum(["red", "blue"]), sure: z.boolean() });
    const text = { format: zodTextFormat(schema, "answer") };
    const body = { model, input, text, ...GREEDY };
    const whole = await client.responses.parse(body);
    expect(schema.parse(whole.output_parsed)).toBeTruthy();
    const streamed = await client.responses.stream(body).finalResponse();
    expect(schema.parse(streamed.output_parsed)).toBeTruthy();
  });

  test("return reasoning when an effort is requested", async () => {
    const { output } = await client.responses.create({
      model,
      input: QUESTION_TO_THINK_ABOUT,
      ...GREEDY,
      max_output_tokens: 6,
      reasoning: { effort: "low" },
    });
    expect(output.find(({ type }) => type === "reasoning")).toMatchObject({
      summary: [{ type: "summary_text", text: expect.stringMatching(/./s) }],
    });
  });

  test("end when the client disconnects", async () => {
    const stream = client.responses.stream({ model, input, text: ENDLESS });
    stream.once("response.output_text.delta", () => stream.abort());
    await expect(stream.finalResponse()).rejects.toThrow(APIUserAbortError);
    await expect.poll(() => activeRequests(daemon)).toBe(0);
  });

  test("raise the client's error classes", async () => {
    await expect(client.responses.create({ model: "no-such-model", input })).rejects.toThrow(NotFoundError);
    await expect(client.responses.create({ model, input: [] })).rejects.toThrow(BadRequestError);
    await expect(
      client.responses.stream({ model, input: "word ".repeat(4000) }).finalResponse(),
    ).rejects.toMatchObject({ status: 400, code: "context_length_exceeded" });
    await expect(
      client.responses.create({ model, input, previous_response_id: "resp_0" }),
    ).rejects.toMatchObject({ status: 400, code: "previous_response_not_found" });
  });
});
