import { describe, expect, test } from "vitest";
import type { ChatMessage } from "../../../src/engine/protocol/generation.ts";
import type { Model } from "../../../src/models/model.ts";
import type { ModelSettings } from "../../../src/models/model.ts";
import { fakeModel } from "../../support/fake-models.ts";
import { type ChatInput, USER, PNG, TOOL, chat, model, resolve, type ReadyRequest } from "./resolve-setup.ts";

test("an answer in a context that shifts, which is never full, ends after ten contexts", async () => {
  const shifting = model({}, {}, { contextSize: 300, loadSettings: { contextShift: true } });
  expect(await resolve({}, shifting)).toMatchObject({ request: { maxTokens: 3000 }, tokenLimit: undefined });
  expect((await resolve({ maxTokens: 5 }, shifting)).request.maxTokens).toBe(5);
  expect((await resolve({})).request.maxTokens).toBeUndefined();
});

describe("settings", () => {
  test("the request wins over the model, the model over the dialect's defaults", async () => {
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

  test("stops of the request replace those of the model, an empty list too", async () => {
    expect((await resolve({ stop: [] }, model({ stop: ["###"] }))).request.stop).toEqual([]);
  });

  test("without any bound the answer may fill the context", async () => {
    expect((await resolve({})).request).not.toHaveProperty("maxTokens");
  });
});

async function think(settings: Partial<ModelSettings>, thinking?: boolean) {
  const input = chat(thinking === undefined ? {} : { thinking });
  return (await resolve({ input }, model(settings, { thinking: true }))).request.input;
}

describe("thinking", () => {
  const thinker = { thinking: { start: "<think>", end: "</think>", enabled: false } };

  test("is what the request says, then what the Modelfile says, and off else", async () => {
    expect(await think(thinker, true)).toMatchObject({ thinking: true });
    expect(await think(thinker)).toMatchObject({ thinking: false });
    expect(await think({})).toMatchObject({ thinking: false });
    expect(await think({ thinking: { ...thinker.thinking, enabled: true } })).toMatchObject({
      thinking: true,
    });
    expect((await resolve({})).request.input).not.toHaveProperty("thinking");
  });

  test("an effort switches it on for a model that can, and is a mere hint to another", async () => {
    const input = chat({ templateVariables: { reasoning_effort: "low" } });
    expect((await resolve({ input }, model(thinker, { thinking: true }))).request.input).toMatchObject({
      thinking: true,
    });
    expect((await resolve({ input })).request.input).not.toHaveProperty("thinking");
  });

  test("the Modelfile's tags tell how to read the answer", async () => {
    expect((await resolve({}, model(thinker))).reasoningTags).toMatchObject({
      start: "<think>",
      end: "</think>",
    });
    expect((await resolve({})).reasoningTags).toBeUndefined();
  });
});

describe("a call that must be made", () => {
  const able = model({}, { tools: true });
  const tools = [TOOL, { name: "now", parameters: { type: "object" } }];

  test("is asked for as JSON by schema, with the tools still shown", async () => {
    const resolved = await resolve({ input: chat({ tools, toolChoice: { name: "now" } }) }, able);
    expect(resolved.request.input).toMatchObject({ tools, toolChoice: "none" });
    expect(resolved.request.format).toMatchObject({
      type: "grammar",
      grammar: expect.stringContaining(String.raw`\"now\"`),
      isJson: true,
    });
    expect(resolved.calls).toEqual({ kind: "forced" });
  });

  test("leaves the engine alone when it may be left out", async () => {
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

  test("writes the tools into the text and reads the calls from it", async () => {
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

  test("shows the tools as text when a call is required too", async () => {
    const resolved = await resolve(
      { input: chat({ tools: [TOOL], toolChoice: "required" }) },
      model({ toolFormat }),
    );
    expect(resolved.request.input).toMatchObject({ tools: [], messages: [{ role: "system" }, USER] });
    expect(resolved.calls).toEqual({ kind: "forced" });
  });

  test("rests when the conversation has to do with no tools", async () => {
    expect((await resolve({}, model({ toolFormat }))).calls).toBeUndefined();
  });
});

const purpose = (kind: "embed" | "rerank") => model({}, {}, { gguf: { ...fakeModel().gguf, purpose: kind } });

describe("what a model cannot do", () => {
  const image = chat({ messages: [{ role: "user", content: [{ type: "image", data: PNG }] }] });

  test.for<[string, Partial<ReadyRequest>, Model, string]>([
    ["see images", { input: image }, model(), "images"],
    ["see images (generate)", { input: { kind: "instruct", prompt: "", images: [PNG] } }, model(), "images"],
    ["call tools", { input: chat({ tools: [TOOL] }) }, model(), "tools"],
    ["think", { input: chat({ thinking: true }) }, model(), "think"],
    ["write JSON", { format: { type: "json" } }, model({}, { json: false }), "format"],
    ["generate (embedding model)", {}, purpose("embed"), "model"],
    ["generate (reranker)", { input: { kind: "prompt", prompt: "" } }, purpose("rerank"), "model"],
  ])("%s is refused with a sentence that says what to do", async ([, changes, of, param]) => {
    await expect(resolve(changes, of)).rejects.toThrow(
      expect.objectContaining({
        code: "unsupported_feature",
        param,
        message: expect.stringMatching(/^"fake" .*[a-z)]\.$/),
      }),
    );
  });

  test("a tool choice that no tool answers is an error of the request", async () => {
    const invalid = expect.objectContaining({ code: "invalid_parameter", param: "tool_choice" });
    const able = model({}, { tools: true });
    await expect(resolve({ input: chat({ toolChoice: "required" }) }, able)).rejects.toThrow(invalid);
    await expect(
      resolve({ input: chat({ tools: [TOOL], toolChoice: { name: "x" } }) }, able),
    ).rejects.toThrow(invalid);
  });

  test("tools that must not be called trouble nobody", async () => {
    await expect(resolve({ input: chat({ tools: [TOOL], toolChoice: "none" }) })).resolves.toBeDefined();
  });
});

describe("a template whose prompt begins reasoning that llama.cpp does not see", () => {
  const gguf = { ...fakeModel().gguf, chatTemplate: "{{ '<｜Assistant｜></think>' }}" };
  const deepseek = model({}, { thinking: true }, { gguf });
  const tagsOf = async (changes: Partial<ChatInput>) =>
    (await resolve({ input: chat(changes) }, deepseek)).reasoningTags;

  test("has answers that begin with reasoning, when it is asked for", async () => {
    expect(await tagsOf({ thinking: true })).toEqual({ start: "", end: "</think>" });
    expect(await tagsOf({ thinking: false })).toBeUndefined();
  });

  test("has none where a message goes on", async () => {
    const begun: ChatMessage = { role: "assistant", content: [{ type: "text", text: "It is" }] };
    expect(await tagsOf({ thinking: true, messages: [USER, begun] })).toBeUndefined();
  });
});

describe("an effort or a budget of thinking", () => {
  const wishes = [
    { input: chat({ templateVariables: { reasoning_effort: "low" } }) },
    { reasoningBudget: 5 },
    { input: { kind: "instruct", prompt: "hi", images: [] }, reasoningBudget: 5 },
  ] as const;

  test("that a model without thinking cannot follow is told", async () => {
    for (const wish of wishes) {
      expect((await resolve(wish, model({}, {}, { alias: "plain" }))).warnings).toEqual([
        '"plain" does not support thinking, so it answers without',
      ]);
    }
  });

  test("is not told where it is followed, or asks for nothing", async () => {
    for (const wish of wishes)
      expect((await resolve(wish, model({}, { thinking: true }))).warnings).toEqual([]);
    expect((await resolve(wishes[0], model({ template: "{{ reasoning_effort }}" }))).warnings).toEqual([]);
    for (const reasoningBudget of [0, undefined])
      expect((await resolve({ reasoningBudget })).warnings).toEqual([]);
  });
});

describe("a schema with a type that nobody knows", () => {
  const schema = { type: "object", properties: { a: { type: "strin" } } };
  const why = "is not enforced";

  test("is told, of a format and of a tool", async () => {
    expect((await resolve({ format: { type: "json_schema", schema } })).warnings).toEqual([
      `properties.a.type ${why}: it is not a type of JSON Schema`,
    ]);
    const input = chat({ tools: [{ name: "add", parameters: schema }] });
    expect((await resolve({ input }, model({}, { tools: true }))).warnings).toEqual([
      `tool add: properties.a.type ${why}`,
    ]);
  });

  test("is refused where it is strict", async () => {
    await expect(resolve({ format: { type: "json_schema", schema, strict: true } })).rejects.toThrow(why);
    const input = chat({ tools: [{ name: "add", parameters: schema, strict: true }] });
    await expect(resolve({ input }, model({}, { tools: true }))).rejects.toThrow(why);
  });
});
