import { describe, expect, test } from "vitest";
import type { GenerationInput } from "../../../../src/engine/protocol/generation.ts";
import { resolveTools } from "../../../../src/inference/tool-calls/resolve-tools.ts";
import { fakeModel } from "../../../support/fake-models.ts";

type ChatInput = Extract<GenerationInput, { kind: "chat" }>;

const TEXT = { type: "text" as const };
const ADD = { name: "add" };
const CALL_TOKEN = 42;
const plain = fakeModel();
const model = fakeModel({ gguf: { ...plain.gguf, toolCallTokens: [CALL_TOKEN] } });
const TAGS = { style: "tags", callStart: "<c>", callEnd: "</c>", resultStart: "<r>", resultEnd: "</r>" };
const tagged = fakeModel({ settings: { ...plain.settings, toolFormat: TAGS } });

function chat(changes: Partial<ChatInput>): ChatInput {
  return {
    kind: "chat",
    messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
    tools: [ADD],
    toolChoice: "auto",
    parallelToolCalls: true,
    ...changes,
  };
}

describe("without allowed calls", () => {
  test("the tools are not rendered, and a bias prevents calls", () => {
    const resolved = resolveTools(chat({ toolChoice: "none" }), TEXT, model);
    expect(resolved.input.tools).toEqual([]);
    expect(resolved.bias).toEqual([{ token: CALL_TOKEN, bias: -100 }]);
    expect(resolved.calls).toBeUndefined();
  });

  test("text in a TOOLFORMAT is not parsed as a call", () => {
    const resolved = resolveTools(chat({ toolChoice: "none" }), TEXT, tagged);
    expect(resolved.calls).toBeUndefined();
    expect(JSON.stringify(resolved.input)).not.toContain("add");
  });

  test("nothing is changed if there are no tools", () => {
    const resolved = resolveTools(chat({ tools: [], toolChoice: "none" }), TEXT, model);
    expect(resolved.bias).toEqual([]);
  });
});

test("a limit to one call applies to every format of calls", () => {
  const single = chat({ parallelToolCalls: false });
  expect(resolveTools(single, TEXT, model).calls).toEqual({ kind: "single" });
  expect(resolveTools(single, TEXT, tagged).calls).toMatchObject({ kind: "tagged", parallel: false });
  expect(resolveTools(chat({}), TEXT, model).calls).toBeUndefined();
});

test("a limit to one call makes the end tag a stop sequence", () => {
  const single = chat({ parallelToolCalls: false });
  expect(resolveTools(single, TEXT, tagged).stop).toEqual([TAGS.callEnd]);
  expect(resolveTools(chat({}), TEXT, tagged).stop).toEqual([]);
  expect(resolveTools(single, TEXT, model).stop).toEqual([]);
  const endless = fakeModel({ settings: { ...plain.settings, toolFormat: { ...TAGS, callEnd: "" } } });
  expect(resolveTools(single, TEXT, endless).stop).toEqual([]);
});

test("an optional call and the schema of the answer are alternatives", () => {
  const schema = { type: "object", properties: { sum: { type: "number" } } };
  const resolved = resolveTools(chat({}), { type: "json_schema", schema }, model);
  expect(resolved).toMatchObject({
    calls: { kind: "offered", names: ["add"] },
    form: { type: "calls", tools: [ADD], answer: schema },
    input: { tools: [ADD], toolChoice: "none" },
  });
  expect(resolveTools(chat({ tools: [] }), { type: "json" }, model).calls).toBeUndefined();
});

test("a forced call replaces the format of the answer", () => {
  const resolved = resolveTools(chat({ toolChoice: { name: "add" } }), { type: "json" }, model);
  expect(resolved).toMatchObject({
    calls: { kind: "forced" },
    form: { type: "calls", tools: [ADD] },
    bias: [],
  });
  expect(resolved.input.tools).toEqual([ADD]);
});

test("calls that llama.cpp does not parse well are parsed here; the tools are still rendered", () => {
  const chatTemplate = "This model only supports single tool-calls at once!";
  const llama = fakeModel({ gguf: { ...plain.gguf, chatTemplate } });
  const { input, calls } = resolveTools(chat({ parallelToolCalls: false }), TEXT, llama);
  expect(input).toMatchObject({ tools: [ADD], toolChoice: "none" });
  expect(calls).toMatchObject({ kind: "written", names: ["add"], parallel: false });
  expect(resolveTools(chat({ tools: [] }), TEXT, llama).calls).toBeUndefined();
  const changed = fakeModel({ gguf: llama.gguf, settings: tagged.settings });
  expect(resolveTools(chat({}), TEXT, changed).calls).toMatchObject({ kind: "tagged" });
});
