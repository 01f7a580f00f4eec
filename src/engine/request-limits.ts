import { ServiceError } from "../errors/service-error.ts";
import { checkTextDepth, MAX_JSON_DEPTH } from "../json/json-reader.ts";
import type { ChatMessage, GenerationRequest, ToolDefinition } from "./protocol/generation.ts";
import type { TokenIds } from "./protocol/calls.ts";

/**
 * Maximum values in a JSON schema, tool parameters or template variables, including nested ones; a large tool catalog
 * has a few thousand.
 */
const MAX_JSON_VALUES = 20_000;

/** Maximum characters in their strings and names, the same as for a grammar. */
const MAX_JSON_CHARACTERS = 256 * 1024;

/** Longest grammar in characters; grammars of large schemas have tens of thousands. */
const MAX_GRAMMAR_LENGTH = 256 * 1024;

/**
 * A prompt with more characters per token of context is rejected without tokenizing it. English has about four per
 * token; the longest tokens, runs of blanks, have a few dozen.
 */
const MAX_CHARACTERS_PER_TOKEN = 64;

/** Longest text to tokenize; all slots wait for it. */
const MAX_TOKENIZED_CHARACTERS = 1024 * 1024;

/** Maximum tokens to convert to text in one call; all slots wait for it. */
const MAX_DETOKENIZED = 1024 * 1024;

/** A prompt of up to this length is always tokenized, however small the context, since that is fast. */
const ALWAYS_TOKENIZED = 64 * 1024;

/**
 * Rejects a request that would block the engine for seconds before the engine could reject it.
 * @throws ServiceError invalid_parameter or context_length_exceeded
 */
export function checkRequestLimits(
  request: GenerationRequest,
  {
    contextSize,
    slots,
    cacheReuse = 0,
  }: { readonly contextSize: number; readonly slots: number; readonly cacheReuse?: number | undefined },
): void {
  const { format, input, slot } = request;
  checkSchemas(request);
  checkSlot(slot, slots);
  // With reuse, cached prompts contain parts that were computed at another position, so it is a setting of the model.
  if (request.cacheReuse && cacheReuse === 0) {
    throw invalid(
      "n_cache_reuse",
      "n_cache_reuse: the model was loaded without reuse of moved parts of prompts; load it with cache_reuse, or leave the field out.",
    );
  }
  if (format.type === "grammar" && format.grammar.length > MAX_GRAMMAR_LENGTH)
    throw invalid("format.grammar", `A grammar may have at most ${MAX_GRAMMAR_LENGTH} characters.`);
  if (input.kind === "chat") checkJson(input.templateVariables, "template variables");
  checkTextLength(promptLength(request), contextSize);
}

/** @throws ServiceError invalid_parameter when a model with so many slots does not have the one that a request names */
function checkSlot(slot: number | undefined, slots: number): void {
  if (slot === undefined || slot < slots) return;
  const numbers = slots === 1 ? "one slot, number 0" : `${slots} slots, numbers 0 to ${slots - 1}`;
  throw invalid("id_slot", `The model has ${numbers}.`);
}

/**
 * Rejects schemas that are too large, before they are walked.
 * @throws ServiceError invalid_parameter
 */
export function checkSchemas({
  format,
  input,
}: {
  readonly format: { readonly type: string; readonly schema?: unknown; readonly param?: string | undefined };
  readonly input: { readonly kind: string; readonly tools?: readonly ToolDefinition[] };
}): void {
  if (format.type === "json_schema") checkJson(format.schema, format.param ?? "format");
  checkJson(input.tools, "tools");
}

/**
 * Rejects earlier tool calls whose arguments are nested so deeply that parsing them would overflow the engine's stack
 * and end it for everyone.
 * @throws ServiceError invalid_json
 */
export function checkCallDepths(input: {
  readonly kind: string;
  readonly messages?: readonly ChatMessage[];
}): void {
  for (const [at, message] of (input.messages ?? []).entries()) {
    for (const [index, call] of (message.toolCalls ?? []).entries()) {
      const what = `The arguments of the tool call "${call.name}"`;
      checkTextDepth(call.arguments, what, `messages.${at}.tool_calls.${index}`);
    }
  }
}

/** @throws ServiceError context_length_exceeded when a text of this many characters cannot fit into the context */
export function checkTextLength(characters: number, contextSize: number): void {
  const most = Math.max(ALWAYS_TOKENIZED, contextSize * MAX_CHARACTERS_PER_TOKEN);
  if (characters > most) {
    throw new ServiceError(
      "context_length_exceeded",
      `The prompt has ${characters} characters and exceeds the context window: the maximum context length is ${contextSize} tokens. Shorten it, or load the model with a larger context.`,
    );
  }
}

function promptLength({ input }: GenerationRequest): number {
  if (input.kind === "prompt") return input.prompt.length;
  let length = 0;
  for (const message of input.messages) {
    length +=
      (message.reasoning?.length ?? 0) + (message.name?.length ?? 0) + (message.toolCallId?.length ?? 0);
    for (const part of message.content) length += part.type === "text" ? part.text.length : 0;
    for (const call of message.toolCalls ?? [])
      length += call.id.length + call.name.length + call.arguments.length;
  }
  return length;
}

/** @throws ServiceError invalid_parameter when a text of this many characters would block the engine */
export function checkTokenized(characters: number): void {
  if (characters > MAX_TOKENIZED_CHARACTERS) {
    throw invalid(
      "content",
      `A text to tokenize may have at most ${MAX_TOKENIZED_CHARACTERS} characters; this one has ${characters}.`,
    );
  }
}

/** @throws ServiceError invalid_parameter when there are too many tokens or the vocabulary does not have one of them */
export function checkDetokenized(tokens: TokenIds, vocabSize: number): void {
  if (tokens.length > MAX_DETOKENIZED)
    throw invalid("tokens", `A request may have at most ${MAX_DETOKENIZED} tokens.`);
  const unknown = tokens.find((token) => token < 0 || token >= vocabSize);
  if (unknown !== undefined)
    throw invalid("tokens", `The model has no token ${unknown}; its tokens are 0 to ${vocabSize - 1}.`);
}

function invalid(param: string, message: string): ServiceError {
  return new ServiceError("invalid_parameter", message, { param });
}

/** Avoids recursion, because the document may be nested more deeply than the stack allows. */
function checkJson(document: unknown, what: string): void {
  const open: { value: unknown; depth: number }[] = [{ value: document, depth: 0 }];
  let values = 0;
  let characters = 0;
  for (let next = open.pop(); next; next = open.pop()) {
    values += 1;
    const { value, depth } = next;
    if (typeof value === "string") characters += value.length;
    if (typeof value === "object" && value !== null) {
      for (const [name, inner] of Object.entries(value)) {
        characters += Array.isArray(value) ? 0 : name.length;
        open.push({ value: inner, depth: depth + 1 });
      }
    }
    if (depth > MAX_JSON_DEPTH || values > MAX_JSON_VALUES || characters > MAX_JSON_CHARACTERS) {
      throw invalid(
        what,
        `The ${what} may have at most ${MAX_JSON_DEPTH} levels of nesting, ${MAX_JSON_VALUES} values and ` +
          `${MAX_JSON_CHARACTERS} characters.`,
      );
    }
  }
}
