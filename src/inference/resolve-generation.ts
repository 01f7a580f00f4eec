import type { EngineInfo } from "../engine/protocol/engine-spec.ts";
import {
  type ChatMessage,
  continuesLast,
  type ContentPart,
  type GenerationInput,
  type GenerationRequest,
  type OutputFormat,
  type Sampling,
} from "../engine/protocol/generation.ts";
import type { Model } from "../models/model.ts";
import { adapterScales } from "./lora-adapters.ts";
import { answerGrammar } from "./response-format.ts";
import { callChecks, type CallChecks } from "./tool-calls/validate-calls.ts";
import type { InferenceRequest, TokenLimit } from "./inference.ts";
import { type LimitedReasoning, type ReasoningTags, tagsOfTemplate } from "./reasoning-parser.ts";
import { checkGeneration } from "./check-capabilities.ts";
import type { MakeGrammar, TextCheck } from "./schema-compiler.ts";
import {
  fittingMessages,
  type TemplateTraits,
  textMessage,
  traitsOf,
  withFirstMessages,
  withReadableCalls,
} from "./chat-template.ts";
import { infillPrompt } from "./infill-prompt.ts";
import { resolveReasoning, ignoredThinking, requestsThinking } from "./reasoning-effort.ts";
import { resolveTools, type WrittenCalls } from "./tool-calls/resolve-tools.ts";
import { withShortCallIds } from "./tool-calls/tool-call-ids.ts";

type AskedThinking = Pick<
  Extract<InferenceRequest["input"], { kind: "instruct" }>,
  "thinking" | "templateVariables"
>;

/** The request for the engine, and how to read its events. */
export interface ResolvedGeneration {
  readonly request: GenerationRequest;
  /** Set if reasoning is in the text, between tags. */
  readonly reasoningTags: ReasoningTags | undefined;
  /** Set if the model may think on in its answer, as its reasoning is cut off. */
  readonly limitedReasoning: LimitedReasoning | undefined;
  readonly calls: WrittenCalls;
  /** What is wrong with the whole text of an answer; absent: its grammar says all that it must be. */
  readonly check?: TextCheck;
  /** The same of the calls that the model chooses to make. */
  readonly callChecks: CallChecks;
  /** Answers that did not fit, before those of this machine. */
  readonly failedTries: number;
  /** What the request asks for and does not get, in words for the user. */
  readonly warnings: readonly string[];
  /** Most tokens of the answer, and who says so; undefined: until the context is full. */
  readonly tokenLimit: TokenLimit | undefined;
  /** Undefined: as the configuration says. */
  readonly repetitionGuard: boolean | undefined;
  /** What is peculiar to the answers of the model's family. */
  readonly traits: TemplateTraits;
  /** The text is passed on as it is. */
  readonly isRaw: boolean;
}

/**
 * Completes a request with the model's settings, then with the dialect's defaults, and converts its input for the engine.
 * @throws ServiceError `unsupported_feature` if the model does not support what the request asks for
 */
export async function resolveGeneration(
  request: InferenceRequest & { readonly format: OutputFormat },
  model: Model,
  engine: Pick<EngineInfo, "hasChatTemplate">,
  makeGrammar: MakeGrammar,
): Promise<ResolvedGeneration> {
  const { settings } = model;
  checkGeneration(request, model);
  const scales = adapterScales(model, request.adapters);
  const tokenLimit = resolveLimit(request, settings.maxTokens);
  const maxTokens = tokenLimit?.tokens ?? shiftedLimit(model);
  const template = settings.template ?? model.gguf.chatTemplate;
  const traits = traitsOf(template);
  const input = resolveInput(request, model, engine.hasChatTemplate);
  const withTools = input.kind === "chat" ? resolveTools(input, request.format, model) : undefined;
  const form = withTools?.form ?? request.format;
  const { format, check, warnings } = await answerGrammar(form, input, traits, makeGrammar);
  const chosen = await callChecks(withTools, makeGrammar);
  const reasoning = resolveReasoning(input, model, { asked: request.reasoningBudget, maxTokens });
  const sampling = mergeSampling(request.defaults.sampling, settings.sampling, request.sampling);
  return {
    request: {
      input: withTools?.input ?? input,
      ...(maxTokens !== undefined && { maxTokens }),
      stop: [...(request.stop ?? settings.stop), ...(withTools?.stop ?? [])],
      sampling: withBias(sampling, withTools?.bias ?? []),
      format,
      ...(request.logprobs !== undefined && { logprobs: request.logprobs }),
      ...reasoning,
      ...(scales && { adapterScales: [...scales] }),
      ...(request.shift && { shift: request.shift }),
      cachePrompt: request.cachePrompt ?? true,
      ...(request.cacheReuse !== undefined && { cacheReuse: request.cacheReuse }),
      ...(request.slot !== undefined && { slot: request.slot }),
      ...(request.details && { details: true }),
      ...(request.timings && { timings: true }),
      ...(request.given && { given: request.given }),
      // An answer that is held back until it fits may be generated several times.
      ...(request.onChosen &&
        (request.failedTries !== undefined || (!check && chosen.checks.size === 0)) && {
          reportsTokens: true,
        }),
    },
    // A raw prompt is continued unchanged, and its text is not interpreted.
    reasoningTags: isRaw(request.input) ? undefined : (settings.thinking ?? begunReasoning(input, traits)),
    limitedReasoning:
      format.type === "text" ? limitedReasoning(withTools?.input ?? input, reasoning, template) : undefined,
    calls: withTools?.calls,
    ...(check && { check }),
    callChecks: chosen.checks,
    failedTries: request.failedTries ?? 0,
    warnings: [
      ...(request.warnings ?? []),
      ...ignoredThinking(request, model),
      ...warnings,
      ...chosen.warnings,
    ],
    tokenLimit,
    repetitionGuard: request.repetitionGuard ?? settings.repetitionGuard,
    traits,
    isRaw: isRaw(request.input),
  };
}

function resolveLimit(
  { maxTokens, defaults }: InferenceRequest,
  ofModel: number | undefined,
): TokenLimit | undefined {
  if (maxTokens !== undefined) return { tokens: maxTokens, setBy: "max_tokens" };
  if (ofModel !== undefined) return { tokens: ofModel, setBy: "num_predict" };
  return defaults.maxTokens === undefined ? undefined : { tokens: defaults.maxTokens, setBy: "default" };
}

/** A context that shifts is never full, and some models never end an answer. */
const MAX_SHIFTED_CONTEXTS = 10;

function shiftedLimit({ loadSettings, contextSize }: Model): number | undefined {
  return loadSettings.contextShift ? MAX_SHIFTED_CONTEXTS * contextSize : undefined;
}

/** A message that goes on is past its reasoning. */
function begunReasoning(input: GenerationInput, { reasoningEnd }: TemplateTraits): ReasoningTags | undefined {
  if (reasoningEnd === undefined || input.kind !== "chat" || input.thinking !== true) return undefined;
  return continuesLast(input) ? undefined : { start: "", end: reasoningEnd };
}

function limitedReasoning(
  input: GenerationInput,
  { reasoning }: Pick<GenerationRequest, "reasoning">,
  template: string | undefined,
): LimitedReasoning | undefined {
  const tags = reasoning?.tags ?? tagsOfTemplate(template);
  if (!reasoning || !tags || (input.kind === "chat" && continuesLast(input))) return undefined;
  return { budget: reasoning.budget, tags };
}

function isRaw({ kind }: InferenceRequest["input"]): boolean {
  return kind === "prompt" || kind === "infill";
}

function resolveInput(
  { input, reasoningBudget: budget }: InferenceRequest,
  model: Model,
  hasChatTemplate: boolean,
): GenerationInput {
  if (input.kind === "prompt") return input;
  if (input.kind === "infill") return { kind: "prompt", prompt: infillPrompt(input, model) };
  if (input.kind === "chat") {
    return {
      ...input,
      messages: resolveMessages(input.messages, model),
      ...thinkingOf(input, budget, model),
    };
  }
  const system = input.system ?? model.settings.system;
  if (!hasChatTemplate && input.images.length === 0) {
    return { kind: "prompt", prompt: system ? `${system}\n\n${input.prompt}` : input.prompt };
  }
  // The text comes last: llama.cpp aborts if an image is at the very end of the prompt.
  const content: ContentPart[] = input.images.map((data) => ({ type: "image", data }));
  content.push({ type: "text", text: input.prompt });
  const prompted: ChatMessage[] = [...textMessage("system", system), { role: "user", content }];
  return {
    kind: "chat",
    messages: withSystem(withFirstMessages(prompted, { ...model.settings, system }), undefined),
    tools: [],
    toolChoice: "none",
    parallelToolCalls: false,
    ...(input.templateVariables && { templateVariables: input.templateVariables }),
    ...thinkingOf(input, budget, model),
  };
}

function resolveMessages(messages: readonly ChatMessage[], { settings, gguf }: Model): ChatMessage[] {
  const template = settings.template ?? gguf.chatTemplate;
  const begun = withFirstMessages(messages, settings);
  const fitting = fittingMessages(withSystem(begun, settings.system), traitsOf(template));
  return withReadableCalls(withShortCallIds(fitting, template));
}

/** Many templates only support one system message, so several at the beginning are joined. */
function withSystem(messages: readonly ChatMessage[], fallback: string | undefined): ChatMessage[] {
  if (!messages.some(({ role }) => role === "system"))
    return [...textMessage("system", fallback), ...messages];
  const begin = messages.findIndex(({ role }) => role !== "system");
  const leading = messages.slice(0, begin < 0 ? messages.length : begin);
  if (leading.length < 2) return [...messages];
  const content = leading.flatMap((message) => message.content);
  return [{ role: "system", content }, ...messages.slice(leading.length)];
}

/**
 * Decided by the request, then by its effort or budget, then by THINKING of the Modelfile. By default a model does not think: on a
 * CPU that would take most of the time of an answer, and few clients show it.
 */
function thinkingOf(
  { thinking: asked, templateVariables: variables }: AskedThinking,
  budget: number | undefined,
  model: Model,
): { thinking?: boolean } {
  if (asked !== undefined) return { thinking: asked };
  if (!model.capabilities.thinking) return {};
  return { thinking: requestsThinking(variables, budget) || (model.settings.thinking?.enabled ?? false) };
}

function withBias(sampling: Sampling, bias: NonNullable<Sampling["logitBias"]>): Sampling {
  return bias.length === 0 ? sampling : { ...sampling, logitBias: [...(sampling.logitBias ?? []), ...bias] };
}

/** Later settings take precedence; undefined ones do not count. */
function mergeSampling(...layers: readonly Sampling[]): Sampling {
  const entries = layers.flatMap((layer) => Object.entries(layer)).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Sampling;
}
