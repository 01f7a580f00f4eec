import { describe, expect, test } from "vitest";
import type { ChatMessage } from "../../../src/engine/protocol/generation.ts";
import type { Model } from "../../../src/models/model.ts";
import type { ModelSettings } from "../../../src/models/model.ts";
import { fakeModel } from "../../support/fake-models.ts";
import { type ChatInput, USER, PNG, TOOL, chat, model, resolve, type ReadyRequest } from "./resolve-setup.ts";

test("an answer with context shift, whose context is never full, ends after ten contexts", async () => {
  const shifting = model({}, {}, { contextSize: 300, loadSettings: { contextShift: true } });
  expect(await resolve({}, shifting)).toMatchObject({ request: { maxTokens: 3000 }, tokenLimit: undefined });
  expect((await resolve({ maxTokens: 5 }, shifting)).request.maxTokens).toBe(5);
  expect((await resolve({})).request.maxTokens).toBeUndefined();
});

describe("settings", () => {
  test("the request takes precedence over the model, the model over the API's defaults", async () => {
    const { request: resolved } = await resolve(
      {
        maxTokens: 5,
        sampling: { temperature: 0.1, topP: undefined },
        defaults: { maxTokens: 512, sampling: { temperature: 0.7, topP: 0.9, topK: 40 } },
      },
      model({ sampling: { temperature: 0.3, topP: 0.5 }, maxTokens: 99, stop: ["###"] }),
    );
    expect(resolved.maxTokens).toBe(5);
    expect(resolved.sampling).toEqual({ temperature: 0.1, topP: 0.5, topK: 40 });
    expect(resolved.stop).toEqual(["###"]);
  });

  test("stop sequences of the request replace the model's, even if empty", async () => {
    expect((await resolve({ stop: [] }, model({ stop: ["###"] }))).request.stop).toEqual([]);
  });

  test("an answer without any limit may fill the context", async () => {
    expect((await resolve({})).request).not.toHaveProperty("maxTokens");
  });
});

async function think(settings: Partial<ModelSettings>, thinking?: boolean) {
  const input = chat(thinking === undefined ? {} : { thinking });
  return (await resolve({ input }, model(settings, { thinking: true }))).request.input;
}

describe("thinking", () => {
  const thinker = { thinking: { start: "<think>", end: "</think>", enabled: false } };

  test("follows the request, then the Modelfile, and is off by default", async () => {
    expect(await think(thinker, true)).toMatchObject({ thinking: true });
    expect(await think(thinker)).toMatchObject({ thinking: false });
    expect(await think({})).toMatchObject({ thinking: false });
    expect(await think({ thinking: { ...thinker.thinking, enabled: true } })).toMatchObject({
      thinking: true,
    });
    expect((await resolve({})).request.input).not.toHaveProperty("thinking");
  });

  test("is switched on by an effort if the model supports it", async () => {
    const input = chat({ templateVariables: { reasoning_effort: "low" } });
    expect((await resolve({ input }, model(thinker, { thinking: true }))).request.input).toMatchObject({
      thinking: true,
    });
    expect((await resolve({ input })).request.input).not.toHaveProperty("thinking");
  });

  test("is parsed by the tags of the Modelfile", async () => {
    expect((await resolve({}, model(thinker))).reasoningTags).toMatchObject({
      start: "<think>",
      end: "</think>",
    });
    expect((await resolve({})).reasoningTags).toBeUndefined();
  });
});

describe("a forced call", () => {
  const able = model({}, { tools: true });
  const tools = [TOOL, { name: "now", parameters: { type: "object" } }];

  test("is enforced as JSON by a schema, with the tools still rendered", async () => {
    const resolved = await resolve({ input: chat({ tools, toolChoice: { name: "now" } }) }, able);
    expect(resolved.request.input).toMatchObject({ tools, toolChoice: "none" });
    expect(resolved.request.format).toMatchObject({
      type: "grammar",
      grammar: expect.stringContaining(String.raw`\"now\"`),
      isJson: true,
    });
    expect(resolved.calls).toEqual({ kind: "forced" });
  });

  test("is left to the engine if it is optional", async () => {
    const resolved = await resolve({ input: chat({ tools }), format: { type: "text" } }, able);
    expect(resolved.request).toMatchObject({
      input: { tools, toolChoice: "auto" },
      format: { type: "text" },
    });
    expect(resolved.calls).toBeUndefined();
  });
});

describe("a TOOLFORMAT", () => {
  const toolFormat = {
    style: "json",
    callStart: "<call>",
    callEnd: "</call>",
    resultStart: "<result>",
    resultEnd: "</result>",
  };

  test("renders the tools as text and parses the calls from text", async () => {
    const resolved = await resolve(
      { input: chat({ tools: [TOOL], parallelToolCalls: false }) },
      model({ toolFormat }),
    );
    expect(resolved.request.input).toMatchObject({
      tools: [],
      toolChoice: "none",
      messages: [{ role: "system" }, USER],
    });
    expect(resolved.calls).toEqual({ kind: "tagged", format: toolFormat, parallel: false });
    expect(resolved.request.stop).toContain("</call>");
    expect(resolved.request.format).toEqual({ type: "text" });
  });

  test("renders the tools as text if a call is required as well", async () => {
    const resolved = await resolve(
      { input: chat({ tools: [TOOL], toolChoice: "required" }) },
      model({ toolFormat }),
    );
    expect(resolved.request.input).toMatchObject({ tools: [], messages: [{ role: "system" }, USER] });
    expect(resolved.calls).toEqual({ kind: "forced" });
  });

  test("has no effect on a conversation without tools", async () => {
    expect((await resolve({}, model({ toolFormat }))).calls).toBeUndefined();
  });
});

const purpose = (kind: "embed" | "rerank") => model({}, {}, { gguf: { ...fakeModel().gguf, purpose: kind } });

describe("a feature that the model does not support", () => {
  const image = chat({ messages: [{ role: "user", content: [{ type: "image", data: PNG }] }] });

  test.for<[string, Partial<ReadyRequest>, Model, string]>([
    ["see images", { input: image }, model(), "images"],
    ["see images (generate)", { input: { kind: "instruct", prompt: "", images: [PNG] } }, model(), "images"],
    ["call tools", { input: chat({ tools: [TOOL] }) }, model(), "tools"],
    ["think", { input: chat({ thinking: true }) }, model(), "think"],
    ["write JSON", { format: { type: "json" } }, model({}, { json: false }), "format"],
    ["generate (embedding model)", {}, purpose("embed"), "model"],
    ["generate (reranker)", { input: { kind: "prompt", prompt: "" } }, purpose("rerank"), "model"],
  ])("is refused with advice: %s", async ([, changes, of, param]) => {
    await expect(resolve(changes, of)).rejects.toThrow(
      expect.objectContaining({
        code: "unsupported_feature",
        param,
        message: expect.stringMatching(/^"fake" .*[a-z)]\.$/),
      }),
    );
  });

  test("is refused if the tool choice names no tool of the request", async () => {
    const invalid = expect.objectContaining({ code: "invalid_parameter", param: "tool_choice" });
    const able = model({}, { tools: true });
    await expect(resolve({ input: chat({ toolChoice: "required" }) }, able)).rejects.toThrow(invalid);
    await expect(
      resolve({ input: chat({ tools: [TOOL], toolChoice: { name: "x" } }) }, able),
    ).rejects.toThrow(invalid);
  });

  test("is not refused if calls are not allowed", async () => {
    await expect(resolve({ input: chat({ tools: [TOOL], toolChoice: "none" }) })).resolves.toBeDefined();
  });
});

describe("a template that opens reasoning in the prompt, which llama.cpp does not recognize", () => {
  const gguf = { ...fakeModel().gguf, chatTemplate: "{{ '<｜Assistant｜></think>' }}" };
  const deepseek = model({}, { thinking: true }, { gguf });
  const tagsOf = async (changes: Partial<ChatInput>) =>
    (await resolve({ input: chat(changes) }, deepseek)).reasoningTags;

  test("has answers that begin with reasoning if thinking is requested", async () => {
    expect(await tagsOf({ thinking: true })).toEqual({ start: "", end: "</think>" });
    expect(await tagsOf({ thinking: false })).toBeUndefined();
  });

  test("has no reasoning if a message is continued", async () => {
    const begun: ChatMessage = { role: "assistant", content: [{ type: "text", text: "It is" }] };
    expect(await tagsOf({ thinking: true, messages: [USER, begun] })).toBeUndefined();
  });
});

describe("a reasoning effort or budget", () => {
  const requests = [
    { input: chat({ templateVariables: { reasoning_effort: "low" } }) },
    { reasoningBudget: 5 },
    { input: { kind: "instruct", prompt: "hi", images: [] }, reasoningBudget: 5 },
  ] as const;

  test("has a warning if the model does not support thinking", async () => {
    for (const request of requests) {
      expect((await resolve(request, model({}, {}, { alias: "plain" }))).warnings).toEqual([
        '"plain" does not support thinking, so it answers without',
      ]);
    }
  });

  test("has no warning if it is applied, or disables thinking", async () => {
    for (const request of requests)
      expect((await resolve(request, model({}, { thinking: true }))).warnings).toEqual([]);
    expect((await resolve(requests[0], model({ template: "{{ reasoning_effort }}" }))).warnings).toEqual([]);
    for (const reasoningBudget of [0, undefined])
      expect((await resolve({ reasoningBudget })).warnings).toEqual([]);
  });
});

describe("a schema with an unknown type", () => {
  const schema = { type: "object", properties: { a: { type: "strin" } } };
  const why = "is not enforced";

  test("has a warning, in a format and in a tool", async () => {
    expect((await resolve({ format: { type: "json_schema", schema } })).warnings).toEqual([
      `properties.a.type ${why}: it is not a type of JSON Schema`,
    ]);
    const input = chat({ tools: [{ name: "add", parameters: schema }] });
    expect((await resolve({ input }, model({}, { tools: true }))).warnings).toEqual([
      `tool add: properties.a.type ${why}`,
    ]);
  });

  test("is refused if it is strict", async () => {
    await expect(resolve({ format: { type: "json_schema", schema, strict: true } })).rejects.toThrow(why);
    const input = chat({ tools: [{ name: "add", parameters: schema, strict: true }] });
    await expect(resolve({ input }, model({}, { tools: true }))).rejects.toThrow(why);
  });
});
