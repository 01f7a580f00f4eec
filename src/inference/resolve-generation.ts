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
import { forcedCallSchema } from "./forced-call/forced-call-schema.ts";
import type { InferenceRequest } from "./inference.ts";
import { infillPrompt } from "./infill-prompt.ts";
import type { ReasoningTags } from "./split-reasoning.ts";
import { renderTools } from "./tool-format/render-tools.ts";

type ChatInput = Extract<GenerationInput, { kind: "chat" }>;

/** What the engine is asked, and how its events are to be read. */
export interface ResolvedGeneration {
  readonly request: GenerationRequest;
  /** Set when reasoning stands in the text between tags. */
  readonly reasoningTags: ReasoningTags | undefined;
  /** How tool calls stand in the text; undefined when the engine reports them itself. */
  readonly calls:
    | { readonly kind: "forced" }
    | { readonly kind: "tagged"; readonly format: ToolFormat; readonly parallel: boolean }
    | undefined;
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
  const maxTokens = request.maxTokens ?? settings.maxTokens ?? request.defaults.maxTokens;
  const input = resolveInput(request.input, model, engine.hasChatTemplate);
  const withTools =
    input.kind === "chat" ? resolveTools(input, request.format, settings.toolFormat) : undefined;
  return {
    request: {
      input: withTools?.input ?? input,
      ...(maxTokens !== undefined && { maxTokens }),
      stop: [...(request.stop ?? settings.stop)],
      sampling: mergeSampling(request.defaults.sampling, settings.sampling, request.sampling),
      format: withTools?.format ?? request.format,
      ...(request.logprobs !== undefined && { logprobs: request.logprobs }),
      cachePrompt: request.cachePrompt ?? true,
    },
    // A raw prompt is continued as it is; nobody asked its text to be read.
    reasoningTags: isRaw(request.input) ? undefined : settings.thinking,
    calls: withTools?.calls,
  };
}

function isRaw({ kind }: InferenceRequest["input"]): boolean {
  return kind === "prompt" || kind === "infill";
}

interface ResolvedTools {
  readonly input: ChatInput;
  readonly format: OutputFormat;
  readonly calls: ResolvedGeneration["calls"];
}

/**
 * A call that must be made is asked for as JSON by schema, which binds any model, in whatever form it would
 * call by itself; the engine still shows it the tools. That leaves no room for another format of the answer.
 */
function resolveTools(
  input: ChatInput,
  format: OutputFormat,
  toolFormat: ToolFormat | undefined,
): ResolvedTools {
  const { tools, toolChoice, parallelToolCalls } = input;
  const shown = toolFormat && usesTools(input) ? withToolsAsText(input, toolFormat) : input;
  if (toolChoice !== "auto" && toolChoice !== "none") {
    return {
      input: { ...shown, toolChoice: "none" },
      format: { type: "json_schema", schema: forcedCallSchema(tools, toolChoice) },
      calls: { kind: "forced" },
    };
  }
  const calls =
    toolFormat && usesTools(input)
      ? { kind: "tagged" as const, format: toolFormat, parallel: parallelToolCalls }
      : undefined;
  return { input: shown, format, calls };
}

function resolveInput(
  input: InferenceRequest["input"],
  model: Model,
  hasChatTemplate: boolean,
): GenerationInput {
  if (input.kind === "prompt") return input;
  if (input.kind === "infill") return { kind: "prompt", prompt: infillPrompt(input, model) };
  if (input.kind === "chat") {
    return {
      ...input,
      messages: withSystem(input.messages, model.settings.system),
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

/** Many templates know one system message, the first: several at the beginning become one. */
function withSystem(messages: readonly ChatMessage[], fallback: string | undefined): ChatMessage[] {
  if (!messages.some(({ role }) => role === "system")) return [...systemMessage(fallback), ...messages];
  const begin = messages.findIndex(({ role }) => role !== "system");
  const leading = messages.slice(0, begin < 0 ? messages.length : begin);
  if (leading.length < 2) return [...messages];
  const content = leading.flatMap((message) => message.content);
  return [{ role: "system", content }, ...messages.slice(leading.length)];
}

function systemMessage(system: string | undefined): ChatMessage[] {
  return system ? [{ role: "system", content: [{ type: "text", text: system }] }] : [];
}

/**
 * The request decides, then an effort that it asks for, then THINKING of the Modelfile. Else a model that can
 * think does not: on a CPU it would spend the tokens of most answers on it, and few clients show it.
 */
function thinkingOf(
  asked: boolean | undefined,
  variables: Record<string, unknown> | undefined,
  model: Model,
): { thinking?: boolean } {
  if (asked !== undefined) return { thinking: asked };
  if (!model.capabilities.thinking) return {};
  const byEffort = variables?.["reasoning_effort"] !== undefined;
  return { thinking: byEffort || (model.settings.thinking?.enabled ?? false) };
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

/** Later settings win; one that is present but undefined does not count. */
function mergeSampling(...layers: readonly Sampling[]): Sampling {
  const entries = layers.flatMap((layer) => Object.entries(layer)).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Sampling;
}
