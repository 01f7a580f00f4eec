import type { ChatMessage, OutputFormat } from "../../../src/engine/protocol/generation.ts";
import type { InferenceRequest } from "../../../src/inference/inference.ts";
import { resolveGeneration } from "../../../src/inference/resolve-generation.ts";
import type { Capabilities, Model, ModelSettings } from "../../../src/models/model.ts";
import { grammarCompiler } from "../../../src/inference/schema-compiler.ts";
import { fakeModel } from "../../support/fake-models.ts";

const WITH_TEMPLATE = { hasChatTemplate: true };
export const USER: ChatMessage = { role: "user", content: [{ type: "text", text: "hi" }] };
export const PNG = new Uint8Array([1, 2, 3]);
export const MAKE = grammarCompiler(undefined, new AbortController().signal);
export const TOOL = { name: "add" };

export type ChatInput = Extract<InferenceRequest["input"], { kind: "chat" }>;

export type ReadyRequest = InferenceRequest & { readonly format: OutputFormat };

export function request(changes: Partial<ReadyRequest> = {}): ReadyRequest {
  return {
    endpoint: "chat",
    input: chat(),
    sampling: {},
    format: { type: "text" },
    defaults: { sampling: {} },
    ...changes,
  };
}

export function chat(changes: Partial<ChatInput> = {}): ChatInput {
  return {
    kind: "chat",
    messages: [USER],
    tools: [],
    toolChoice: "auto",
    parallelToolCalls: true,
    ...changes,
  };
}

export function model(
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

export async function resolve(changes: Partial<ReadyRequest>, of: Model = model()) {
  return await resolveGeneration(request(changes), of, WITH_TEMPLATE, MAKE);
}
