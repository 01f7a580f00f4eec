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
import { type CompileGrammar, llamaSchemas, type TextCheck } from "./schema-compiler.ts";
import {
  messagesForTemplate,
  type TemplateTraits,
  textMessage,
  traitsOf,
  withFirstMessages,
  withJsonCalls,
} from "./chat-template.ts";
import { infillPrompt } from "./infill-prompt.ts";
import { resolveReasoning, ignoredThinking, requestsThinking } from "./reasoning-effort.ts";
import { resolveTools, type WrittenCalls } from "./tool-calls/resolve-tools.ts";
import { withShortCallIds } from "./tool-calls/tool-call-ids.ts";

type RequestedThinking = Pick<
  Extract<InferenceRequest["input"], { kind: "instruct" }>,
  "thinking" | "templateVariables"
>;

/** Request for the engine, and how to filter its events. */
export interface ResolvedGeneration {
  readonly request: GenerationRequest;
  /** Set if reasoning has to be parsed from the text. */
  readonly reasoningTags: ReasoningTags | undefined;
  /** Set if reasoning may be cut off and continue in the answer. */
  readonly limitedReasoning: LimitedReasoning | undefined;
  readonly calls: WrittenCalls;
  /** Checks the complete text; absent: the grammar enforces everything. */
  readonly check?: TextCheck;
  /** Checks of optional tool calls. */
  readonly callChecks: CallChecks;
  /** Number of answers from other machines that did not fit the schema. */
  readonly failedTries: number;
  /** Warnings for the user about requested features that are not applied. */
  readonly warnings: readonly string[];
  /** Token limit of the answer and its origin; undefined: until the context is full. */
  readonly tokenLimit: TokenLimit | undefined;
  /** Undefined: as configured. */
  readonly repetitionGuard: boolean | undefined;
  readonly traits: TemplateTraits;
  /** True if the text is not filtered. */
  readonly isRaw: boolean;
}

/**
 * Completes a request with the model's settings, then with the API's defaults, and converts its input for the engine.
 * @throws ServiceError `unsupported_feature` if the model does not support a requested feature
 */
export async function resolveGeneration(
  request: InferenceRequest & { readonly format: OutputFormat },
  model: Model,
  engine: Pick<EngineInfo, "hasChatTemplate">,
  compileGrammar: CompileGrammar,
): Promise<ResolvedGeneration> {
  const { settings } = model;
  checkGeneration(request, model);
  const scales = adapterScales(model, request.adapters);
  const tokenLimit = resolveLimit(request, settings.maxTokens);
  const maxTokens = tokenLimit?.tokens ?? contextShiftLimit(model);
  const template = settings.template ?? model.gguf.chatTemplate;
  const traits = traitsOf(template);
  const input = resolveInput(request, model, engine.hasChatTemplate);
  const withTools = input.kind === "chat" ? resolveTools(input, request.format, model) : undefined;
  const answerForm = withTools?.form ?? request.format;
  const { format, check, warnings } = await answerGrammar(answerForm, input, traits, compileGrammar);
  const optionalCalls = await callChecks(withTools, compileGrammar);
  const reasoning = resolveReasoning(input, model, { requestedBudget: request.reasoningBudget, maxTokens });
  const sampling = mergeSampling(request.defaults.sampling, settings.sampling, request.sampling);
  const { continuation } = request;
  return {
    request: {
      input: await withLlamaSchemas(withTools?.input ?? input, compileGrammar),
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
      ...(continuation?.given && { given: continuation.given }),
      // An answer that is checked when it is complete may be generated several times.
      ...(continuation?.onTokenIds &&
        (continuation.failedTries !== undefined || (!check && optionalCalls.checks.size === 0)) && {
          reportsTokens: true,
        }),
    },
    // The text after a raw prompt is not parsed.
    reasoningTags: isRaw(request.input) ? undefined : (settings.thinking ?? openReasoning(input, traits)),
    limitedReasoning:
      format.type === "text" ? limitedReasoning(withTools?.input ?? input, reasoning, template) : undefined,
    calls: withTools?.calls,
    ...(check && { check }),
    callChecks: optionalCalls.checks,
    failedTries: continuation?.failedTries ?? 0,
    warnings: [
      ...(request.warnings ?? []),
      ...ignoredThinking(request, model),
      ...warnings,
      ...optionalCalls.warnings,
    ],
    tokenLimit,
    repetitionGuard: request.repetitionGuard ?? settings.repetitionGuard,
    traits,
    isRaw: isRaw(request.input),
  };
}

/** Converts the schemas of tools to those that templates show to the model, and llama.cpp converts to grammars. */
async function withLlamaSchemas(
  input: GenerationInput,
  compileGrammar: CompileGrammar,
): Promise<GenerationInput> {
  if (input.kind !== "chat") return input;
  const withParameters = input.tools.filter(({ parameters }) => parameters);
  const converted = await llamaSchemas(
    withParameters.map(({ parameters }) => parameters),
    compileGrammar,
  );
  const schemas = new Map(withParameters.map((tool, at) => [tool, converted[at]?.schema]));
  const tools = input.tools.map((tool) =>
    tool.parameters ? { ...tool, parameters: schemas.get(tool) } : tool,
  );
  return { ...input, tools };
}

function resolveLimit(
  { maxTokens, defaults }: InferenceRequest,
  modelLimit: number | undefined,
): TokenLimit | undefined {
  if (maxTokens !== undefined) return { tokens: maxTokens, setBy: "max_tokens" };
  if (modelLimit !== undefined) return { tokens: modelLimit, setBy: "num_predict" };
  return defaults.maxTokens === undefined ? undefined : { tokens: defaults.maxTokens, setBy: "default" };
}

/** Limit of answers with context shift, in contexts: the context is never full, and some models never stop. */
const MAX_SHIFTED_CONTEXTS = 10;

function contextShiftLimit({ loadSettings, contextSize }: Model): number | undefined {
  return loadSettings.contextShift ? MAX_SHIFTED_CONTEXTS * contextSize : undefined;
}

/**
 * Tags of reasoning that the prompt opens; undefined if the answer continues a message, which is past its reasoning.
 */
function openReasoning(input: GenerationInput, { reasoningEnd }: TemplateTraits): ReasoningTags | undefined {
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
      ...resolveThinking(input, budget, model),
    };
  }
  const system = input.system ?? model.settings.system;
  if (!hasChatTemplate && input.images.length === 0) {
    return { kind: "prompt", prompt: system ? `${system}\n\n${input.prompt}` : input.prompt };
  }
  // The text comes last, because llama.cpp aborts if the prompt ends with an image.
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
    ...resolveThinking(input, budget, model),
  };
}

function resolveMessages(messages: readonly ChatMessage[], { settings, gguf }: Model): ChatMessage[] {
  const template = settings.template ?? gguf.chatTemplate;
  const complete = withFirstMessages(messages, settings);
  const adapted = messagesForTemplate(withSystem(complete, settings.system), traitsOf(template));
  return withJsonCalls(withShortCallIds(adapted, template));
}

/** Adds the default system prompt, and joins leading system messages, as many templates support only one. */
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
 * Resolves thinking: the request's setting, then its effort or budget, then THINKING of the Modelfile. Default: off,
 * because it would take most of an answer's time on a CPU, and few clients display it.
 */
function resolveThinking(
  { thinking, templateVariables: variables }: RequestedThinking,
  budget: number | undefined,
  model: Model,
): { thinking?: boolean } {
  if (thinking !== undefined) return { thinking };
  if (!model.capabilities.thinking) return {};
  return { thinking: requestsThinking(variables, budget) || (model.settings.thinking?.enabled ?? false) };
}

function withBias(sampling: Sampling, bias: NonNullable<Sampling["logitBias"]>): Sampling {
  return bias.length === 0 ? sampling : { ...sampling, logitBias: [...(sampling.logitBias ?? []), ...bias] };
}

/** Merges settings; later layers take precedence, undefined values are skipped. */
function mergeSampling(...layers: readonly Sampling[]): Sampling {
  const entries = layers.flatMap((layer) => Object.entries(layer)).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Sampling;
}
