import { ServiceError } from "../../errors/service-error.ts";
import {
  tokenIdsSchema,
  tokenPiecesSchema,
  type TokenIds,
  type TokenizeOptions,
  type TokenPieces,
} from "../protocol/calls.ts";
import { checkSpecialTokens } from "./special-token-limit.ts";
import type { RequestLoop } from "./request-loop.ts";
import { PIECES_VERB, TOKENIZE_VERB } from "./tokenizer-patches.ts";
import { EngineCallError, StockEngineError, type WllamaSession } from "./wllama-session.ts";

/** llama.cpp's tokenizer with the loaded model's vocabulary. It does not take a slot. */
export class Tokenizer {
  readonly #session: Pick<WllamaSession, "call">;
  readonly #loop: Pick<RequestLoop, "runBetweenPolls">;

  constructor(session: Pick<WllamaSession, "call">, loop: Pick<RequestLoop, "runBetweenPolls">) {
    this.#session = session;
    this.#loop = loop;
  }

  /**
   * @throws ServiceError unsupported_feature on the stock WASM, invalid_parameter for a text with too many possible
   *   special tokens
   */
  async tokenize(text: string, options: TokenizeOptions, signal: AbortSignal): Promise<TokenIds> {
    checkSpecialTokens(text);
    const bytes = new TextEncoder().encode(text);
    const { addSpecial, parseSpecial } = options;
    return tokenIdsSchema.parse(
      await this.#ask(signal, () => this.#session.call(TOKENIZE_VERB, bytes, addSpecial, parseSpecial)),
    );
  }

  /** Tokens of a prompt; 0 where they cannot be counted: on the stock WASM, or if the engine will refuse the text. */
  async count(prompt: string, signal: AbortSignal): Promise<number> {
    try {
      return (await this.tokenize(prompt, { addSpecial: true, parseSpecial: true }, signal)).length;
    } catch (error) {
      if (error instanceof ServiceError) return 0;
      throw error;
    }
  }

  /** @throws ServiceError unsupported_feature on the stock WASM */
  async pieces(tokens: TokenIds, signal: AbortSignal): Promise<TokenPieces> {
    return tokenPiecesSchema.parse(await this.#ask(signal, () => this.#session.call(PIECES_VERB, tokens)));
  }

  async #ask(signal: AbortSignal, call: () => Promise<unknown>): Promise<unknown> {
    try {
      return await this.#loop.runBetweenPolls(() => {
        signal.throwIfAborted();
        return call();
      });
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
