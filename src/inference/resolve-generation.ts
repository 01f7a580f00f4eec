import type { EngineInfo } from "../engine/protocol/engine-spec.ts";
import type {
  ChatMessage,
  ContentPart,
  GenerationInput,
  GenerationRequest,
  OutputFormat,
  Sampling,
} from "../engine/protocol/generation.ts";
import type { Model, ToolFormat } from "../models/model.ts";
import { checkGeneration } from "./check-capabilities.ts";
import type { InferenceRequest } from "./inference.ts";
import type { ReasoningTags } from "./split-reasoning.ts";
import { callGrammar } from "./tool-format/call-grammar.ts";
import { renderTools } from "./tool-format/render-tools.ts";

type ChatInput = Extract<GenerationInput, { kind: "chat" }>;

/** What the engine is asked, and how its events are to be read. */
export interface ResolvedGeneration {
  readonly request: GenerationRequest;
  /** Set when reasoning stands in the text between tags. */
  readonly reasoningTags: ReasoningTags | undefined;
  /** Set when calls stand in the text in this format. */
  readonly toolFormat: { readonly format: ToolFormat; readonly parallel: boolean } | undefined;
}

/**
 * Fills a request with the model's own settings, and with the dialect's defaults after that, and brings its
 * input into the form that the engine takes.
 * @throws ServiceError `unsupported_feature` when the model cannot do what the request asks for.
 */
export function resolveGeneration(
  request: InferenceRequest,
  model: Model,
  engine: Pick<EngineInfo, "hasChatTemplate">,
): ResolvedGeneration {
  const { settings } = model;
  checkGeneration(request, model);
  const input = resolveInput(request.input, model, engine.hasChatTemplate);
  const toolFormat = input.kind === "chat" && usesTools(input) ? settings.toolFormat : undefined;
  const format = formatFor(request.format, input, toolFormat);
  const maxTokens = request.maxTokens ?? settings.maxTokens ?? request.defaults.maxTokens;
  return {
    request: {
      input: toolFormat && input.kind === "chat" ? withToolsAsText(input, toolFormat) : input,
      ...(maxTokens !== undefined && { maxTokens }),
      stop: [...(request.stop ?? settings.stop)],
      sampling: mergeSampling(request.defaults.sampling, settings.sampling, request.sampling),
      format,
      ...(request.logprobs !== undefined && { logprobs: request.logprobs }),
      cachePrompt: request.cachePrompt ?? true,
    },
    // A raw prompt is continued as it is; nobody asked its text to be read.
    reasoningTags: request.input.kind === "prompt" ? undefined : settings.thinking,
    toolFormat:
      toolFormat && input.kind === "chat"
        ? { format: toolFormat, parallel: input.parallelToolCalls }
        : undefined,
  };
}

function resolveInput(
  input: InferenceRequest["input"],
  model: Model,
  hasChatTemplate: boolean,
): GenerationInput {
  if (input.kind === "prompt") return input;
  if (input.kind === "chat") {
    const hasSystem = input.messages.some(({ role }) => role === "system");
    return {
      ...input,
      messages: hasSystem ? input.messages : [...systemMessage(model.settings.system), ...input.messages],
      ...thinkingOf(input.thinking, input.templateVariables, model),
    };
  }
  const system = input.system ?? model.settings.system;
  if (!hasChatTemplate && input.images.length === 0) {
    return { kind: "prompt", prompt: system ? `${system}\n\n${input.prompt}` : input.prompt };
  }
  // The text comes last: a picture at the very end of the prompt would end the engine.
  const content: ContentPart[] = input.images.map((data) => ({ type: "image", data }));
  content.push({ type: "text", text: input.prompt });
  return {
    kind: "chat",
    messages: [...systemMessage(system), { role: "user", content }],
    tools: [],
    toolChoice: "none",
    parallelToolCalls: false,
    ...thinkingOf(input.thinking, undefined, model),
  };
}

function systemMessage(system: string | undefined): ChatMessage[] {
  return system ? [{ role: "system", content: [{ type: "text", text: system }] }] : [];
}

/** The request decides, then an effort that it asks for, then THINKING of the Modelfile, then the template. */
function thinkingOf(
  asked: boolean | undefined,
  variables: Record<string, unknown> | undefined,
  model: Model,
): { thinking?: boolean } {
  const byEffort = model.capabilities.thinking && variables?.["reasoning_effort"] !== undefined;
  const thinking = asked ?? (byEffort ? true : model.settings.thinking?.enabled);
  return thinking === undefined ? {} : { thinking };
}

function usesTools(input: ChatInput): boolean {
  return (
    input.tools.length > 0 ||
    input.messages.some(({ role, toolCalls }) => role === "tool" || toolCalls !== undefined)
  );
}

function withToolsAsText(input: ChatInput, format: ToolFormat): ChatInput {
  return {
    ...input,
    messages: renderTools(input.messages, input.tools, input.toolChoice, format),
    tools: [],
    toolChoice: "none",
  };
}

/** Required calls in a text format are enforced by a grammar, which leaves no room for another format. */
function formatFor(
  asked: OutputFormat,
  input: GenerationInput,
  toolFormat: ToolFormat | undefined,
): OutputFormat {
  if (!toolFormat || input.kind !== "chat") return asked;
  const { toolChoice, tools, parallelToolCalls } = input;
  if (toolChoice === "auto" || toolChoice === "none") return asked;
  const allowed =
    typeof toolChoice === "object" ? tools.filter(({ name }) => name === toolChoice.name) : tools;
  return { type: "grammar", grammar: callGrammar(allowed, toolFormat, parallelToolCalls) };
}

/** Later settings win; one that is present but undefined does not count. */
function mergeSampling(...layers: readonly Sampling[]): Sampling {
  const entries = layers.flatMap((layer) => Object.entries(layer)).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Sampling;
}
