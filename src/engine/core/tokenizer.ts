import { ServiceError } from "../../errors/service-error.ts";
import {
  type TokenIds,
  tokenIdsSchema,
  type TokenizeOptions,
  type TokenPieces,
  tokenPiecesSchema,
} from "../protocol/calls.ts";
import type { GenerationRequest } from "../protocol/generation.ts";
import type { RequestLoop } from "./request-loop.ts";
import { EngineCallError, StockEngineError } from "./wllama-session.ts";
import { PIECES_VERB, TOKENIZE_VERB } from "./worker-verbs.ts";

/** llama.cpp's tokenizer with the loaded model's vocabulary. Does not occupy a slot. */
export class Tokenizer {
  readonly #loop: RequestLoop;

  constructor(loop: RequestLoop) {
    this.#loop = loop;
  }

  /**
   * Tokenizes a text.
   * @throws ServiceError unsupported_feature on the stock WASM, invalid_parameter for a text with too many possible
   *   special tokens
   */
  async tokenize(text: string, options: TokenizeOptions, signal: AbortSignal): Promise<TokenIds> {
    checkSpecialTokens(text);
    const bytes = new TextEncoder().encode(text);
    const { addSpecial, parseSpecial } = options;
    return tokenIdsSchema.parse(await this.#call(signal, TOKENIZE_VERB, bytes, addSpecial, parseSpecial));
  }

  /** Returns the number of tokens of a prompt; 0 on the stock WASM, or if the engine will reject the text. */
  async count(prompt: string, signal: AbortSignal): Promise<number> {
    try {
      return (await this.tokenize(prompt, { addSpecial: true, parseSpecial: true }, signal)).length;
    } catch (error) {
      if (error instanceof ServiceError) return 0;
      throw error;
    }
  }

  /** Returns the bytes of tokens. @throws ServiceError unsupported_feature on the stock WASM */
  async pieces(tokens: TokenIds, signal: AbortSignal): Promise<TokenPieces> {
    return tokenPiecesSchema.parse(await this.#call(signal, PIECES_VERB, tokens));
  }

  async #call(signal: AbortSignal, verb: string, ...args: readonly unknown[]): Promise<unknown> {
    try {
      return await this.#loop.call(verb, args, signal);
    } catch (error) {
      if (error instanceof StockEngineError) throw unsupported(error);
      throw error instanceof EngineCallError ? failed(error) : error;
    }
  }
}

function failed(cause: Error): ServiceError {
  return new ServiceError("inference_failed", "The model's tokenizer failed on this text.", { cause });
}

function unsupported(cause: Error): ServiceError {
  return new ServiceError(
    "unsupported_feature",
    "Tokenizing needs Daybreak's own engine, but this model runs on the stock one; set engine.kernels to auto, or in a page use a browser with memory64 and JSPI.",
    { cause },
  );
}

/** Spelling of special tokens in almost all vocabularies. */
const SPECIAL_TOKEN = /<[^<>]{1,64}>|\[[^[\]\s]{1,32}\]/g;

/**
 * Maximum number of possible special tokens in one request, far more than the tags of an HTML page. llama.cpp's search
 * for them takes quadratic time, and all slots wait for it.
 */
const MAX_SPECIAL_TOKENS = 32_768;

/** Checks a text. @throws ServiceError invalid_parameter if it has too many possible special tokens */
export function checkSpecialTokens(text: string): void {
  rejectAboveLimit(countSpecialTokens(text, 0));
}

/** Checks all texts of a request together. @throws ServiceError invalid_parameter */
export function checkRequestSpecialTokens({ input }: GenerationRequest): void {
  let count = 0;
  for (const text of textsOf(input)) count = countSpecialTokens(text, count);
  rejectAboveLimit(count);
}

function* textsOf(input: GenerationRequest["input"]): Generator<string, void, undefined> {
  if (input.kind === "prompt") {
    yield input.prompt;
    return;
  }
  for (const { content, reasoning, toolCalls } of input.messages) {
    if (reasoning !== undefined) yield reasoning;
    for (const part of content) if (part.type === "text") yield part.text;
    for (const call of toolCalls ?? []) yield call.arguments;
  }
}

function countSpecialTokens(text: string, before: number): number {
  let count = before;
  SPECIAL_TOKEN.lastIndex = 0;
  while (count <= MAX_SPECIAL_TOKENS && SPECIAL_TOKEN.test(text)) count += 1;
  return count;
}

function rejectAboveLimit(count: number): void {
  if (count <= MAX_SPECIAL_TOKENS) return;
  throw new ServiceError(
    "invalid_parameter",
    `The text has more than ${MAX_SPECIAL_TOKENS} tags such as <this> or [THIS], which may be special tokens; send it in parts.`,
  );
}
