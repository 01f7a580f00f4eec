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

/** Tokens that a chat template may add: a system prompt, the date, instructions for tools. */
const TEMPLATE_TOKENS = 512;

/** Tokens that any template adds around a chat message. */
const MESSAGE_TOKENS = 32;

/** Tokens reserved at first for an answer that reserves more as it grows: most answers are shorter. */
const MIN_ANSWER_TOKENS = 1024;

/** Context of an engine and the number of slots that share it. */
interface SlottedContext extends Pick<EngineInfo, "contextSize" | "contextTokens"> {
  readonly slots: number;
}

/**
 * Returns the context tokens to reserve for a generation before its prompt is tokenized. A text has at most as many
 * tokens as bytes. Only the projector knows how many tokens an image or a recording takes, so a prompt with media
 * reserves the whole context.
 */
export function reservedTokens(request: GenerationRequest, context: SlottedContext): number {
  const { contextSize } = context;
  if (hasMedia(request.input)) return contextSize;
  const promptTokens = estimatedTokens(
    request.input,
    utf8Length(serializedInput(request.input), contextSize),
  );
  return neededTokens(request, promptTokens, context);
}

/**
 * Returns the context tokens to reserve once the length of the prompt is known. In a shared context, an answer that may
 * fill it begins with the share of one slot and reserves more as it grows.
 */
export function neededTokens(
  request: GenerationRequest,
  promptTokens: number,
  context: SlottedContext,
): number {
  const limit = maxContextTokens(request, promptTokens, context);
  const share = Math.floor(context.contextTokens / context.slots);
  const isShared = share < context.contextSize;
  if (!isShared || !mayFillContext(request, promptTokens, context)) return limit;
  // In a small context, half of the share is left for the prompt.
  const minAnswer = Math.min(MIN_ANSWER_TOKENS, Math.floor(share / 2));
  return Math.min(limit, Math.max(share, promptTokens + minAnswer));
}

/** Most context tokens that a generation can use. */
function maxContextTokens(
  { maxTokens }: GenerationRequest,
  promptTokens: number,
  { contextSize }: Pick<SlottedContext, "contextSize">,
): number {
  return maxTokens === undefined ? contextSize : Math.min(contextSize, promptTokens + maxTokens);
}

/**
 * True if an answer has no effective limit. Many clients request half of the context or more just to be safe, and few
 * answers get that long.
 */
function mayFillContext(
  { maxTokens }: GenerationRequest,
  promptTokens: number,
  { contextSize }: SlottedContext,
): boolean {
  return maxTokens === undefined || maxTokens >= contextSize / 2 || promptTokens + maxTokens > contextSize;
}

/**
 * Returns the context tokens to reserve for a text to embed or score. Embedding models and rerankers need none. A
 * generative model needs the whole context: in a shared one, llama.cpp does not free the cells of the slot's last
 * prompt.
 */
export function embeddingContextTokens({ purpose }: EngineSpec, { contextSize }: EngineInfo): number {
  return purpose === "generate" ? contextSize : 0;
}

/** True if the prompt has images or audio, whose tokens only the projector can count. */
function hasMedia(input: GenerationInput): boolean {
  return (
    input.kind === "chat" && input.messages.some(({ content }) => content.some(({ type }) => type !== "text"))
  );
}

/** Estimates the tokens of a prompt from those of its text, before the template is applied. */
function estimatedTokens(input: GenerationInput, textTokens: number): number {
  if (input.kind === "prompt") return textTokens + MESSAGE_TOKENS;
  return textTokens + input.messages.length * MESSAGE_TOKENS + TEMPLATE_TOKENS;
}

/** Bytes of a text in UTF-8; a text with at least `limit` code units is not counted further. */
function utf8Length(text: string, limit: number): number {
  return text.length >= limit ? text.length : new TextEncoder().encode(text).length;
}

/** Longest text that is tokenized to count it, which stalls all slots for up to a third of a second. */
const MAX_COUNTED_CHARACTERS = 256 * 1024;

/** Factor by which a rendered template may be longer than the JSON of its messages. */
const TEMPLATE_GROWTH = 1.25;

/** Indentation of tool schemas in templates. */
const INDENT = 4;

/**
 * Returns the context tokens to reserve for a generation at admission. With one token per byte, a long prompt would
 * often wait although it fits; so it is tokenized first if other requests run.
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
  const text = serializedInput(input, INDENT);
  if (text.length > MAX_COUNTED_CHARACTERS) return reserved;
  try {
    const { length } = await engine.tokenize(text, { addSpecial: true, parseSpecial: false }, signal);
    const promptTokens = estimatedTokens(input, Math.ceil(length * TEMPLATE_GROWTH));
    return Math.min(reserved, neededTokens(request, promptTokens, context));
  } catch (error) {
    // The stock WASM has no tokenizer. A text that is refused here gets a better error from the generation.
    if (error instanceof ServiceError) return reserved;
    throw error;
  }
}

function serializedInput(input: GenerationInput, indent?: number): string {
  if (input.kind === "prompt") return input.prompt;
  const { messages, tools, templateVariables } = input;
  return JSON.stringify([messages, tools, templateVariables], undefined, indent);
}

type AnswerProgress = Extract<GenerationEvent, { type: "answer-progress" }>;

/**
 * Reserved tokens at which an answer is ended. It continues until the next progress report and until the engine has
 * confirmed the end.
 */
const END_MARGIN_TOKENS = 2 * ANSWER_PROGRESS_TOKENS;

/** Tokens reserved ahead, so that no other call is admitted to context that a running answer is about to need. */
const LOOKAHEAD_TOKENS = 4 * ANSWER_PROGRESS_TOKENS;

type GeneratingEngine = Pick<Engine, "generate" | "info" | "spec">;

/** Wraps an engine so that its answers stay within a permit's context tokens. */
export function withinContext(engine: GeneratingEngine, permit: Permit): Pick<Engine, "generate"> {
  return {
    generate: (request, onEvent, signal) => generateWithinContext(engine, permit, request, onEvent, signal),
  };
}

/**
 * Generates an answer within the context tokens of its permit. The permit is resized when the length of the prompt is
 * known, and grows with the answer. If no more context is free, because other running answers hold it, the answer ends
 * with the reason "length".
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

  const onPromptLength = (total: number): void => {
    promptTokens = total;
    const needed = neededTokens(request, total, context);
    if (needed <= permit.tokens) return permit.resize(needed);
    // The prompt is already in the context, whether it was reserved or not.
    if (total > permit.tokens) permit.resize(total);
    permit.grow(needed - permit.tokens);
  };
  const isFull = (tokens: number): boolean => {
    const limit = maxContextTokens(request, promptTokens, context);
    const used = promptTokens + tokens;
    const wanted = Math.min(limit, used + LOOKAHEAD_TOKENS);
    if (wanted <= permit.tokens || permit.grow(wanted - permit.tokens)) return false;
    return used + END_MARGIN_TOKENS > permit.tokens;
  };
  const forward = (event: GenerationEvent): void => {
    if (last) return;
    if (event.type === "answer-progress") {
      if (!isFull(event.usage.completionTokens)) return;
      last = event;
      full.abort(new Error("the context is full"));
      return;
    }
    if (event.type === "prompt-progress") onPromptLength(event.total);
    isDone = event.type === "done";
    onEvent(event);
  };

  try {
    await engine.generate(request, forward, AbortSignal.any([signal, full.signal]));
  } catch (error) {
    if (!last || signal.aborted) throw error;
  }
  if (last && !isDone) onEvent({ ...last, type: "done", reason: "length" });
}
