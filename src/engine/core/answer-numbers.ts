import { ServiceError } from "../../errors/service-error.ts";
import type { GenerationRequest } from "../protocol/generation.ts";
import { PREFIX_TOKENS_VERB } from "./worker-verbs.ts";
import type { RequestLoop } from "./request-loop.ts";

/** A request number has 15 bits (see encodeKernelOptions()). */
const MAX_NUMBERS = 0x7fff;

/**
 * Assigns numbers to requests for which our kernels process single tokens: those with prefix tokens or token reports.
 */
export class RequestNumbers {
  readonly #loop: RequestLoop;
  readonly #vocabSize: number;
  #last = 0;

  constructor(loop: RequestLoop, vocabSize: number) {
    this.#loop = loop;
    this.#vocabSize = vocabSize;
  }

  /**
   * Assigns a number to a request and stores its prefix tokens in the heap. Dispose the number after the answer.
   * Returns undefined for a request that needs no number.
   * @throws ServiceError invalid_parameter for tokens that are not in the vocabulary, insufficient_memory if the heap
   *   is full
   */
  async assign({ given, reportsTokens, logprobs }: GenerationRequest): Promise<RequestNumber | undefined> {
    if (!given?.length && !reportsTokens) return undefined;
    this.#last = (this.#last % MAX_NUMBERS) + 1;
    const value = this.#last;
    if (!given?.length) return { value, [Symbol.dispose]: () => undefined };
    this.#checkTokens(given);
    const isStored = await this.#loop.call(PREFIX_TOKENS_VERB, [
      "give",
      value,
      given,
      logprobs !== undefined,
    ]);
    if (isStored !== true) {
      const message = "The engine has no memory left for the tokens that the answer begins with.";
      throw new ServiceError("insufficient_memory", message);
    }
    return {
      value,
      [Symbol.dispose]: () => void this.#loop.call(PREFIX_TOKENS_VERB, ["take", value]).catch(() => {}),
    };
  }

  /** Checks the tokens, because llama.cpp aborts on a token that is not in its vocabulary. */
  #checkTokens(given: readonly number[]): void {
    if (given.every((token) => token < this.#vocabSize)) return;
    throw new ServiceError(
      "invalid_parameter",
      "The answer begins with tokens that are not in the model's vocabulary; start it again.",
    );
  }
}

/** A number by which our kernels identify a request. */
interface RequestNumber extends Disposable {
  readonly value: number;
}
