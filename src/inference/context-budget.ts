import type { Engine } from "../engine/engine.ts";
import type { EngineInfo, EngineSpec } from "../engine/protocol/engine-spec.ts";
import {
  ANSWER_PROGRESS_TOKENS,
  type GenerationEvent,
  type GenerationInput,
  type GenerationRequest,
} from "../engine/protocol/generation.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { Permit } from "./admission-queue.ts";

/** Tokens that a chat template may add: its own system prompt, today's date, instructions for tools. */
const TEMPLATE_TOKENS = 512;

/** Tokens around one message of a chat, in any template. */
const MESSAGE_TOKENS = 32;

/** Least room for an answer that takes more as it grows: most answers are shorter. */
const LEAST_ANSWER_TOKENS = 1024;

const ENCODER = new TextEncoder();
/** Texts are encoded here only to be measured. */
const SCRATCH = new Uint8Array(16 * 1024);

/** The context of an engine, and among how many slots it is shared. */
interface SlottedContext extends Pick<EngineInfo, "contextSize" | "contextTokens"> {
  readonly slots: number;
}

/**
 * Tokens of context that a generation is admitted with, before the length of its prompt is known: a text has at most as many
 * tokens as bytes. Only the projector knows how many tokens an image or a recording takes, so that one reserves the whole context until
 * they are counted.
 */
export function reservedTokens(request: GenerationRequest, context: SlottedContext): number {
  const { contextSize } = context;
  if (hasMedia(request.input)) return contextSize;
  const promptTokens = assumedTokens(request.input, textBytes(request.input, contextSize));
  return neededTokens(request, promptTokens, context);
}

/**
 * The same once llama.cpp has reported the length of the prompt. In a shared context, an answer that may fill it begins with
 * a fair share and takes more as it grows.
 */
export function neededTokens(
  request: GenerationRequest,
  promptTokens: number,
  context: SlottedContext,
): number {
  const most = mostTokens(request, promptTokens, context);
  const share = Math.floor(context.contextTokens / context.slots);
  const isShared = share < context.contextSize;
  if (!isShared || !mayFill(request, promptTokens, context)) return most;
  // In a small context, half of a share is left for the prompt.
  const leastAnswer = Math.min(LEAST_ANSWER_TOKENS, Math.floor(share / 2));
  return Math.min(most, Math.max(share, promptTokens + leastAnswer));
}

/** Tokens of context that a generation can use at most. */
function mostTokens(
  { maxTokens }: GenerationRequest,
  promptTokens: number,
  { contextSize }: Pick<SlottedContext, "contextSize">,
): number {
  return maxTokens === undefined ? contextSize : Math.min(contextSize, promptTokens + maxTokens);
}

/**
 * Whether the limit of an answer is none, or hardly one: clients ask for half of the context or more to be on the safe side,
 * and few answers get there.
 */
function mayFill(
  { maxTokens }: GenerationRequest,
  promptTokens: number,
  { contextSize }: SlottedContext,
): boolean {
  return maxTokens === undefined || maxTokens >= contextSize / 2 || promptTokens + maxTokens > contextSize;
}

/**
 * Tokens of context that a text to embed or score may need. Embedding models and rerankers need none. A generative model
 * needs a whole context: if it is shared, llama.cpp does not free what the slot of the next text still holds.
 */
export function embeddedTokens({ purpose }: EngineSpec, { contextSize }: EngineInfo): number {
  return purpose === "generate" ? contextSize : 0;
}

/** Whether only the projector knows the length of the prompt. */
function hasMedia(input: GenerationInput): boolean {
  return (
    input.kind === "chat" && input.messages.some(({ content }) => content.some(({ type }) => type !== "text"))
  );
}

/** Tokens of a prompt with a text of so many, as far as is known before its template is applied. */
function assumedTokens(input: GenerationInput, textTokens: number): number {
  if (input.kind === "prompt") return textTokens + MESSAGE_TOKENS;
  return textTokens + input.messages.length * MESSAGE_TOKENS + TEMPLATE_TOKENS;
}

function textBytes(input: GenerationInput, most: number): number {
  if (input.kind === "prompt") return utf8Length(input.prompt, most);
  const { messages, tools, templateVariables } = input;
  return utf8Length(JSON.stringify([messages, tools, templateVariables]), most);
}

/** Bytes of a text in UTF-8, counted only up to `most`. */
function utf8Length(text: string, most: number): number {
  if (text.length >= most) return text.length;
  let bytes = 0;
  for (let at = 0; at < text.length;) {
    const { read, written } = ENCODER.encodeInto(at === 0 ? text : text.slice(at), SCRATCH);
    at += read;
    bytes += written;
  }
  return bytes;
}

/** Longest text that is counted: all slots wait for that, about a third of a second. A longer one hardly fits beside others. */
const MAX_COUNTED_CHARACTERS = 256 * 1024;

/** How much longer a prompt may become in the words of a template than in JSON. */
const TEMPLATE_GROWTH = 1.25;

/** As much as templates indent the schemas of tools. */
const INDENT = 4;

/**
 * Tokens of context that a generation is admitted with. A long prompt has several bytes per token, so that one token per byte
 * would often have it wait for requests that it fits beside; if others run, it is counted before.
 */
export async function admissionTokens(
  engine: Pick<Engine, "info" | "spec" | "tokenize">,
  request: GenerationRequest,
  isBusy: boolean,
  signal: AbortSignal,
): Promise<number> {
  const context = { ...engine.info, slots: engine.spec.slots };
  const reserved = reservedTokens(request, context);
  const { input } = request;
  const isSmall = reserved <= context.contextTokens / context.slots;
  if (!isBusy || isSmall || hasMedia(input)) return reserved;
  const text = documentOf(input);
  if (text.length > MAX_COUNTED_CHARACTERS) return reserved;
  try {
    const { length } = await engine.tokenize(text, { addSpecial: true, parseSpecial: false }, signal);
    const promptTokens = assumedTokens(input, Math.ceil(length * TEMPLATE_GROWTH));
    return Math.min(reserved, neededTokens(request, promptTokens, context));
  } catch (error) {
    // The stock WASM has no tokenizer, and a text may be refused; what is wrong with it, the engine says better.
    if (error instanceof ServiceError) return reserved;
    throw error;
  }
}

function documentOf(input: GenerationInput): string {
  if (input.kind === "prompt") return input.prompt;
  const { messages, tools, templateVariables } = input;
  return JSON.stringify([messages, tools, templateVariables], undefined, INDENT);
}

type AnswerProgress = Extract<GenerationEvent, { type: "answer-progress" }>;

/**
 * An answer ends when so many tokens are left of what it holds: until the next report, and until the engine has confirmed
 * the end, it goes on.
 */
const END_TOKENS = 2 * ANSWER_PROGRESS_TOKENS;

/** It takes more so much earlier, so that the next caller is not admitted to room that it is about to need. */
const AHEAD_TOKENS = 4 * ANSWER_PROGRESS_TOKENS;

type GeneratingEngine = Pick<Engine, "generate" | "info" | "spec">;

/** An engine whose answers keep to a permit. */
export function withinContext(engine: GeneratingEngine, permit: Permit): Pick<Engine, "generate"> {
  return {
    generate: (request, onEvent, signal) => generateWithinContext(engine, permit, request, onEvent, signal),
  };
}

/**
 * Generates an answer within the tokens of context that its permit holds. The permit is corrected when the prompt has been
 * counted, and takes more as the answer grows. When there is no more, because other running answers hold it, the answer
 * ends with the reason "length".
 */
export async function generateWithinContext(
  engine: GeneratingEngine,
  permit: Permit,
  request: GenerationRequest,
  onEvent: (event: GenerationEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  const context = { ...engine.info, slots: engine.spec.slots };
  const full = new AbortController();
  let promptTokens = 0;
  let last: AnswerProgress | undefined;
  let isDone = false;

  const prompted = (total: number): void => {
    promptTokens = total;
    const needed = neededTokens(request, total, context);
    if (needed <= permit.tokens) return permit.resize(needed);
    // The prompt is there, whether it fits or not.
    if (total > permit.tokens) permit.resize(total);
    permit.grow(needed - permit.tokens);
  };
  const isFull = (tokens: number): boolean => {
    const most = mostTokens(request, promptTokens, context);
    const used = promptTokens + tokens;
    const wished = Math.min(most, used + AHEAD_TOKENS);
    if (wished <= permit.tokens || permit.grow(wished - permit.tokens)) return false;
    return used + END_TOKENS > permit.tokens;
  };
  const take = (event: GenerationEvent): void => {
    if (last) return;
    if (event.type === "answer-progress") {
      if (!isFull(event.usage.completionTokens)) return;
      last = event;
      full.abort(new Error("the context is full"));
      return;
    }
    if (event.type === "prompt-progress") prompted(event.total);
    isDone = event.type === "done";
    onEvent(event);
  };

  try {
    await engine.generate(request, take, AbortSignal.any([signal, full.signal]));
  } catch (error) {
    if (!last || signal.aborted) throw error;
  }
  if (last && !isDone) onEvent({ ...last, type: "done", reason: "length" });
}
