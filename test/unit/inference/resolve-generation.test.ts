import { describe, expect, test } from "vitest";
import type { ChatMessage } from "../../../src/engine/protocol/generation.ts";
import type { InferenceRequest } from "../../../src/inference/inference.ts";
import { resolveGeneration } from "../../../src/inference/resolve-generation.ts";
import type { Capabilities, Model, ModelSettings } from "../../../src/models/model.ts";
import { fakeModel } from "../../support/fake-models.ts";

const WITH_TEMPLATE = { hasChatTemplate: true };
const USER: ChatMessage = { role: "user", content: [{ type: "text", text: "hi" }] };
const PNG = new Uint8Array([1, 2, 3]);
const TOOL = { name: "add" };

type ChatInput = Extract<InferenceRequest["input"], { kind: "chat" }>;

function request(changes: Partial<InferenceRequest> = {}): InferenceRequest {
  return {
    endpoint: "chat",
    input: chat(),
    sampling: {},
    format: { type: "text" },
    defaults: { sampling: {} },
    ...changes,
  };
}

function chat(changes: Partial<ChatInput> = {}): ChatInput {
  return {
    kind: "chat",
    messages: [USER],
    tools: [],
    toolChoice: "auto",
    parallelToolCalls: true,
    ...changes,
  };
}

function model(
  settings: Partial<ModelSettings> = {},
  capabilities: Partial<Capabilities> = {},
  changes: Partial<Model> = {},
): Model {
  const plain = fakeModel();
  return fakeModel({
    settings: { ...plain.settings, ...settings },
    capabilities: { ...plain.capabilities, ...capabilities },
    ...changes,
  });
}

function resolve(changes: Partial<InferenceRequest>, of: Model = model()) {
  return resolveGeneration(request(changes), of, WITH_TEMPLATE);
}

test("an answer in a context that shifts, which is never full, ends after ten contexts", () => {
  const shifting = model({}, {}, { contextSize: 300, loadSettings: { contextShift: true } });
  expect(resolve({}, shifting)).toMatchObject({ request: { maxTokens: 3000 }, tokenLimit: undefined });
  expect(resolve({ maxTokens: 5 }, shifting).request.maxTokens).toBe(5);
  expect(resolve({}).request.maxTokens).toBeUndefined();
});

describe("settings", () => {
  test("the request wins over the model, the model over the dialect's defaults", () => {
    const { request: resolved } = resolve(
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

  test("stops of the request replace those of the model, an empty list too", () => {
    expect(resolve({ stop: [] }, model({ stop: ["###"] })).request.stop).toEqual([]);
  });

  test("without any bound the answer may fill the context", () => {
    expect(resolve({}).request).not.toHaveProperty("maxTokens");
  });
});

function instruct(system?: string) {
  const input = { kind: "instruct" as const, prompt: "hi", system, images: [] };
  return resolve({ input }, model({ system: "Be kind." })).request.input;
}

const text = (role: "system" | "user" | "assistant", content: string): ChatMessage => ({
  role,
  content: [{ type: "text", text: content }],
});

describe("the model's first messages", () => {
  const first = [
    { role: "user", content: "Is Oslo in Norway?" },
    { role: "assistant", content: "Yes." },
  ] as const;
  const FIRST = first.map(({ role, content }) => text(role, content));

  test("stand behind the system prompt, the model's or the request's", () => {
    const of = model({ system: "Be kind.", messages: first });
    expect(resolve({}, of).request.input).toMatchObject({
      messages: [text("system", "Be kind."), ...FIRST, USER],
    });
    const input = chat({ messages: [text("system", "Be brief."), USER] });
    expect(resolve({ input }, of).request.input).toMatchObject({
      messages: [text("system", "Be brief."), ...FIRST, USER],
    });
  });

  test("make one system message with the system prompt where they begin with one", () => {
    const of = model({ system: "Be kind.", messages: [{ role: "system", content: "Be brief." }, ...first] });
    const joined = {
      role: "system",
      content: [
        { type: "text", text: "Be kind." },
        { type: "text", text: "Be brief." },
      ],
    };
    expect(resolve({}, of).request.input).toMatchObject({ messages: [joined, ...FIRST, USER] });
    const input = { kind: "instruct" as const, prompt: "hi", images: [] };
    expect(resolve({ input }, of).request.input).toMatchObject({ messages: [joined, ...FIRST, USER] });
  });

  test("are left out of a prompt that is text alone", () => {
    const input = { kind: "instruct" as const, prompt: "hi", images: [] };
    const { request: plain } = resolveGeneration(request({ input }), model({ messages: first }), {
      hasChatTemplate: false,
    });
    expect(plain.input).toEqual({ kind: "prompt", prompt: "hi" });
  });
});

describe("system prompt", () => {
  const SYSTEM: ChatMessage = { role: "system", content: [{ type: "text", text: "Be kind." }] };

  test("the model's is put first when the conversation has none", () => {
    const { input } = resolve({}, model({ system: "Be kind." })).request;
    expect(input).toMatchObject({ messages: [SYSTEM, USER] });
  });

  test("the conversation's own stays alone", () => {
    const own: ChatMessage = { role: "system", content: [{ type: "text", text: "Be brief." }] };
    const { input } = resolve(
      { input: chat({ messages: [own, USER] }) },
      model({ system: "Be kind." }),
    ).request;
    expect(input).toMatchObject({ messages: [own, USER] });
  });

  test("of several at the beginning one is made, since many templates know only one", () => {
    const other: ChatMessage = { role: "system", content: [{ type: "text", text: "Be brief." }] };
    const { input } = resolve({ input: chat({ messages: [SYSTEM, other, USER, other] }) }).request;
    expect(input).toMatchObject({
      messages: [{ role: "system", content: [{ text: "Be kind." }, { text: "Be brief." }] }, USER, other],
    });
  });

  test("an instruction uses its own, the model's, or none when it is empty", () => {
    expect(instruct()).toMatchObject({ messages: [SYSTEM, USER] });
    expect(instruct("")).toMatchObject({ messages: [USER] });
    expect(instruct("Own.")).toMatchObject({
      messages: [{ role: "system", content: [{ text: "Own." }] }, USER],
    });
  });
});

describe("instructions", () => {
  test("go as plain text to a model without a chat template", () => {
    const { input } = resolveGeneration(
      request({ input: { kind: "instruct", prompt: "Once", system: "Tell.", images: [] } }),
      model(),
      { hasChatTemplate: false },
    ).request;
    expect(input).toEqual({ kind: "prompt", prompt: "Tell.\n\nOnce" });
  });

  test("put images before the text, so that an image never ends the prompt", () => {
    const { input } = resolve(
      { input: { kind: "instruct", prompt: "What?", images: [PNG] } },
      model({}, { vision: true }),
    ).request;
    expect(input).toMatchObject({
      messages: [{ role: "user", content: [{ type: "image" }, { type: "text", text: "What?" }] }],
    });
  });
});

function think(settings: Partial<ModelSettings>, thinking?: boolean) {
  const input = chat(thinking === undefined ? {} : { thinking });
  return resolve({ input }, model(settings, { thinking: true })).request.input;
}

describe("thinking", () => {
  const thinker = { thinking: { start: "<think>", end: "</think>", enabled: false } };

  test("is what the request says, then what the Modelfile says, and off else", () => {
    expect(think(thinker, true)).toMatchObject({ thinking: true });
    expect(think(thinker)).toMatchObject({ thinking: false });
    expect(think({})).toMatchObject({ thinking: false });
    expect(think({ thinking: { ...thinker.thinking, enabled: true } })).toMatchObject({ thinking: true });
    expect(resolve({}).request.input).not.toHaveProperty("thinking");
  });

  test("an effort switches it on for a model that can, and is a mere hint to another", () => {
    const input = chat({ templateVariables: { reasoning_effort: "low" } });
    expect(resolve({ input }, model(thinker, { thinking: true })).request.input).toMatchObject({
      thinking: true,
    });
    expect(resolve({ input }).request.input).not.toHaveProperty("thinking");
  });

  test("the Modelfile's tags tell how to read the answer", () => {
    expect(resolve({}, model(thinker)).reasoningTags).toMatchObject({ start: "<think>", end: "</think>" });
    expect(resolve({}).reasoningTags).toBeUndefined();
  });
});

describe("a call that must be made", () => {
  const able = model({}, { tools: true });
  const tools = [TOOL, { name: "now", parameters: { type: "object" } }];

  test("is asked for as JSON by schema, with the tools still shown", () => {
    const resolved = resolve({ input: chat({ tools, toolChoice: { name: "now" } }) }, able);
    expect(resolved.request.input).toMatchObject({ tools, toolChoice: "none" });
    expect(resolved.request.format).toMatchObject({
      type: "grammar",
      grammar: expect.stringContaining(String.raw`\"now\"`),
      isJson: true,
    });
    expect(resolved.calls).toEqual({ kind: "forced" });
  });

  test("leaves the engine alone when it may be left out", () => {
    const resolved = resolve({ input: chat({ tools }), format: { type: "text" } }, able);
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

  test("writes the tools into the text and reads the calls from it", () => {
    const resolved = resolve(
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

  test("shows the tools as text when a call is required too", () => {
    const resolved = resolve(
      { input: chat({ tools: [TOOL], toolChoice: "required" }) },
      model({ toolFormat }),
    );
    expect(resolved.request.input).toMatchObject({ tools: [], messages: [{ role: "system" }, USER] });
    expect(resolved.calls).toEqual({ kind: "forced" });
  });

  test("rests when the conversation has to do with no tools", () => {
    expect(resolve({}, model({ toolFormat })).calls).toBeUndefined();
  });
});

describe("what a model cannot do", () => {
  const image = chat({ messages: [{ role: "user", content: [{ type: "image", data: PNG }] }] });
  const purpose = (kind: "embed" | "rerank") =>
    model({}, {}, { gguf: { ...fakeModel().gguf, purpose: kind } });

  test.for<[string, Partial<InferenceRequest>, Model, string]>([
    ["see images", { input: image }, model(), "images"],
    ["see images (generate)", { input: { kind: "instruct", prompt: "", images: [PNG] } }, model(), "images"],
    ["call tools", { input: chat({ tools: [TOOL] }) }, model(), "tools"],
    ["think", { input: chat({ thinking: true }) }, model(), "think"],
    ["write JSON", { format: { type: "json" } }, model({}, { json: false }), "format"],
    ["generate (embedding model)", {}, purpose("embed"), "model"],
    ["generate (reranker)", { input: { kind: "prompt", prompt: "" } }, purpose("rerank"), "model"],
  ])("%s is refused with a sentence that says what to do", ([, changes, of, param]) => {
    expect(() => resolve(changes, of)).toThrow(
      expect.objectContaining({
        code: "unsupported_feature",
        param,
        message: expect.stringMatching(/^"fake" .*[a-z)]\.$/),
      }),
    );
  });

  test("a tool choice that no tool answers is an error of the request", () => {
    const invalid = expect.objectContaining({ code: "invalid_parameter", param: "tool_choice" });
    const able = model({}, { tools: true });
    expect(() => resolve({ input: chat({ toolChoice: "required" }) }, able)).toThrow(invalid);
    expect(() => resolve({ input: chat({ tools: [TOOL], toolChoice: { name: "x" } }) }, able)).toThrow(
      invalid,
    );
  });

  test("tools that must not be called trouble nobody", () => {
    expect(() => resolve({ input: chat({ tools: [TOOL], toolChoice: "none" }) })).not.toThrow();
  });
});

describe("a template whose prompt begins reasoning that llama.cpp does not see", () => {
  const gguf = { ...fakeModel().gguf, chatTemplate: "{{ '<｜Assistant｜></think>' }}" };
  const deepseek = model({}, { thinking: true }, { gguf });
  const tagsOf = (changes: Partial<ChatInput>) => resolve({ input: chat(changes) }, deepseek).reasoningTags;

  test("has answers that begin with reasoning, when it is asked for", () => {
    expect(tagsOf({ thinking: true })).toEqual({ start: "", end: "</think>" });
    expect(tagsOf({ thinking: false })).toBeUndefined();
  });

  test("has none where a message goes on", () => {
    const begun: ChatMessage = { role: "assistant", content: [{ type: "text", text: "It is" }] };
    expect(tagsOf({ thinking: true, messages: [USER, begun] })).toBeUndefined();
  });
});

describe("an effort or a budget of thinking", () => {
  const wishes = [
    { input: chat({ templateVariables: { reasoning_effort: "low" } }) },
    { reasoningBudget: 5 },
    { input: { kind: "instruct", prompt: "hi", images: [] }, reasoningBudget: 5 },
  ] as const;

  test("that a model without thinking cannot follow is told", () => {
    for (const wish of wishes) {
      expect(resolve(wish, model({}, {}, { alias: "plain" })).warnings).toEqual([
        '"plain" does not support thinking, so it answers without',
      ]);
    }
  });

  test("is not told where it is followed, or asks for nothing", () => {
    for (const wish of wishes) expect(resolve(wish, model({}, { thinking: true })).warnings).toEqual([]);
    expect(resolve(wishes[0], model({ template: "{{ reasoning_effort }}" })).warnings).toEqual([]);
    for (const reasoningBudget of [0, undefined]) expect(resolve({ reasoningBudget }).warnings).toEqual([]);
  });
});

describe("a schema with a type that nobody knows", () => {
  const schema = { type: "object", properties: { a: { type: "strin" } } };
  const why = "is not enforced";

  test("is told, of a format and of a tool", () => {
    expect(resolve({ format: { type: "json_schema", schema } }).warnings).toEqual([
      `properties.a.type ${why}: it is not a type of JSON Schema`,
    ]);
    const input = chat({ tools: [{ name: "add", parameters: schema }] });
    expect(resolve({ input }, model({}, { tools: true })).warnings).toEqual([
      `tool add: properties.a.type ${why}`,
    ]);
  });

  test("is refused where it is strict", () => {
    expect(() => resolve({ format: { type: "json_schema", schema, strict: true } })).toThrow(why);
    const input = chat({ tools: [{ name: "add", parameters: schema, strict: true }] });
    expect(() => resolve({ input }, model({}, { tools: true }))).toThrow(why);
  });
});
