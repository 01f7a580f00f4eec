import { withoutUndefined } from "../../json/json-values.ts";
import {
  type ChatMessage,
  continuesLast,
  type GenerationInput,
  type GenerationRequest,
  type JsonSchema,
  type OutputFormat,
  type Sampling,
  type ToolChoice,
  type ToolDefinition,
} from "../protocol/generation.ts";
import { SAMPLING_ENTRIES } from "../protocol/sampling-fields.ts";

/** Input of wllama's completion action. */
interface CompletionCall {
  readonly isChat: boolean;
  readonly body: Readonly<Record<string, unknown>>;
  /** Images and recordings in the order of their markers. */
  readonly files: Uint8Array[];
}

/** Value of a token count that means the entire context. llama.cpp's server does not accept negative numbers. */
const ENTIRE_CONTEXT = -1;

/** Schema for any JSON object. */
const ANY_OBJECT: JsonSchema = { type: "object" };

/** Properties of the loaded model that a request depends on. */
interface RequestContext {
  /** Placeholder of an image or a recording in the prompt. */
  readonly mediaMarker: string;
  readonly contextSize: number;
  readonly sharedContext: boolean;
  readonly adapterScales: readonly number[];
  readonly mustDisableReasoning: boolean;
  readonly guessTokens: number;
  /** Number by which our kernels identify the request; see RequestNumbers. */
  readonly number?: number | undefined;
}

/** Converts a request into one for llama.cpp's server. Copies only known fields. */
export function buildCompletionCall(
  request: GenerationRequest,
  {
    mediaMarker,
    contextSize,
    sharedContext,
    mustDisableReasoning,
    guessTokens,
    adapterScales,
    number,
  }: RequestContext,
): CompletionCall {
  const files: Uint8Array[] = [];
  const { input } = request;
  // Without alternatives, llama.cpp does not report any log probabilities.
  const alternatives = request.logprobs === undefined ? undefined : Math.max(1, request.logprobs);
  const common = {
    stream: true,
    stream_options: { include_usage: true },
    return_progress: true,
    // Timings contain the number of tokens, including those without text.
    ...((sharedContext || request.timings) && { timings_per_token: true }),
    ...(request.stop.length > 0 && { stop: request.stop }),
    // Only verbose answers contain the stop string and the prompt.
    ...((request.stop.length > 0 || request.details) && { verbose: true }),
    max_tokens: request.maxTokens ?? -1,
    cache_prompt: request.cachePrompt,
    ...withoutUndefined({
      n_keep: request.shift?.keep,
      n_discard: request.shift?.discard,
      n_cache_reuse: request.cacheReuse,
    }),
    // Always sent: without it llama.cpp would reuse a slot's KV cache that was computed with other scales.
    ...(adapterScales.length > 0 && {
      lora: (request.adapterScales ?? adapterScales).map((scale, id) => ({ id, scale })),
    }),
    ...buildSampling({ ...request.sampling, guessTokens: undefined }, contextSize),
    sse_ping_interval: encodeKernelOptions(
      // llama.cpp does not report log probabilities of drafted tokens.
      alternatives === undefined ? (request.sampling.guessTokens ?? guessTokens) : 0,
      request.slot,
      number,
    ),
  };
  if (input.kind === "prompt") {
    return {
      isChat: false,
      files,
      body: {
        ...common,
        prompt: input.prompt,
        ...buildFormat(request.format, false),
        ...(alternatives !== undefined && { logprobs: alternatives }),
      },
    };
  }
  const isContinued = continuesLast(input);
  const thinking = isContinued ? false : input.thinking; // a continued message cannot begin with reasoning
  return {
    isChat: true,
    files,
    body: {
      ...common,
      messages: input.messages.map((message) => buildMessage(message, mediaMarker, files)),
      ...(isContinued && { continue_final_message: true, add_generation_prompt: false }),
      ...buildTools(input.tools, input.toolChoice, input.parallelToolCalls),
      ...buildFormat(request.format, true),
      ...buildTemplateVariables(input.templateVariables, thinking),
      ...(thinking !== false && buildReasoning(request.reasoning)),
      // Otherwise llama.cpp's grammar for the format still allows reasoning before the answer.
      ...(mustDisableReasoning &&
        thinking === false &&
        request.format.type !== "text" && { reasoning_format: "none" }),
      // llama.cpp rejects the field `logprobs` together with tools.
      ...(alternatives !== undefined && { n_probs: alternatives }),
    },
  };
}

/**
 * Encodes the options that our kernels read from a request (server_task in wasm/kernels/server.h) into a field that
 * llama.cpp ignores here. Bits 0 to 7: maximum draft tokens; 8 to 15: the slot plus 1; from 16: the request number.
 */
function encodeKernelOptions(guessTokens: number, slot = -1, number = 0): number {
  return guessTokens + (slot + 1) * 0x100 + number * 0x1_0000;
}

function buildSampling(sampling: Sampling, contextSize: number): Record<string, unknown> {
  const fields = SAMPLING_ENTRIES.map(([key, { name, isWindow }]) => {
    const value = sampling[key];
    return [name, isWindow && value === ENTIRE_CONTEXT ? contextSize : value];
  });
  return withoutUndefined({
    ...Object.fromEntries(fields),
    seed: sampling.seed ?? randomSeed(),
    logit_bias: sampling.logitBias?.map(({ token, bias }) => [token, bias]),
  });
}

function randomSeed(): number {
  // Excludes the largest value, which llama.cpp interprets as "no seed".
  return Math.floor(Math.random() * 0xffff_ffff);
}

function buildMessage(message: ChatMessage, mediaMarker: string, files: Uint8Array[]): object {
  const parts = message.content.map((part) => {
    if (part.type === "text") return { type: "text", text: part.text };
    files.push(part.data);
    return { type: "text", text: mediaMarker };
  });
  // llama.cpp aborts on a prompt that ends with media, and some templates add no text after the content.
  if ((message.content.at(-1)?.type ?? "text") !== "text") parts.push({ type: "text", text: "" });
  const [only] = parts;
  const isPlain = parts.length === 1 && only !== undefined;
  return withoutUndefined({
    role: message.role,
    content: isPlain ? only.text : parts.length > 0 ? parts : message.toolCalls ? null : "",
    reasoning_content: message.reasoning,
    tool_calls: message.toolCalls?.map(({ id, name, arguments: text }) => ({
      id,
      type: "function",
      function: { name, arguments: text },
    })),
    tool_call_id: message.toolCallId,
    name: message.name,
  });
}

/**
 * Converts tools. llama.cpp cannot force a tool by name, so a named tool is sent as the only one, with a required call.
 */
function buildTools(
  tools: readonly ToolDefinition[],
  choice: ToolChoice,
  parallel: boolean,
): Record<string, unknown> {
  if (tools.length === 0) return {};
  const isNamed = typeof choice === "object";
  const offered = isNamed ? tools.filter(({ name }) => name === choice.name) : tools;
  return {
    tools: offered.map(({ name, description, parameters }) => ({
      type: "function",
      function: withoutUndefined({
        name,
        description,
        parameters: parameters ?? ANY_OBJECT,
      }),
    })),
    tool_choice: isNamed ? "required" : choice,
    parallel_tool_calls: parallel,
    // The daemon ends the answer at a second call, and needs the figures up to that point.
    ...(!parallel && { timings_per_token: true }),
  };
}

function buildFormat(format: OutputFormat, isChat: boolean): Record<string, unknown> {
  if (format.type === "text") return {};
  if (format.type === "grammar") return { grammar: format.grammar };
  const schema = format.type === "json_schema" ? format.schema : ANY_OBJECT;
  if (!isChat) return { json_schema: schema };
  if (format.type === "json") return { response_format: { type: "json_object" } };
  return { response_format: { type: "json_schema", json_schema: { name: "answer", schema } } };
}

/** Converts the limit of reasoning. Tags that llama.cpp finds in the template take precedence over ours. */
function buildReasoning(reasoning: GenerationRequest["reasoning"]): Record<string, unknown> {
  if (!reasoning) return {};
  const { budget, tags } = reasoning;
  return {
    thinking_budget_tokens: budget,
    ...(tags && {
      reasoning_budget_tokens: budget,
      reasoning_budget_start_tag: tags.start,
      reasoning_budget_end_tag: tags.end,
      reasoning_budget_message: "",
    }),
  };
}

function buildTemplateVariables(
  variables: Readonly<Record<string, unknown>> | undefined,
  thinking: boolean | undefined,
): Record<string, unknown> {
  if (!variables && thinking === undefined) return {};
  return {
    // Some templates use one of these names, some the other.
    chat_template_kwargs: {
      ...(thinking !== undefined && { thinking }),
      ...variables,
      ...(thinking !== undefined && { enable_thinking: thinking }),
    },
  };
}

/** Writes a request as JSON. Replaces unpaired surrogates, because llama.cpp rejects a request that contains one. */
export function toRequestJson(body: unknown): string {
  return JSON.stringify(body, (_, value: unknown) =>
    typeof value === "string" ? value.toWellFormed() : value,
  );
}

/**
 * Returns a text with about as many tokens as the prompt of a request, without its media. Only llama.cpp can render the
 * chat template.
 */
export function approximatePromptText(input: GenerationInput): string {
  if (input.kind === "prompt") return input.prompt;
  const messages = input.messages.map(({ role, content, reasoning, toolCalls }) => {
    const texts = content.map((part) => (part.type === "text" ? part.text : ""));
    return [role, ...texts, reasoning, toolCalls];
  });
  return JSON.stringify(input.tools.length > 0 ? [input.tools, messages] : messages);
}
