import { ServiceError } from "../../errors/service-error.ts";
import type { GenerationRequest } from "../protocol/generation.ts";
import { GIVEN_VERB } from "./worker-verbs.ts";
import type { RequestLoop } from "./request-loop.ts";
import type { WllamaSession } from "./wllama-session.ts";

/** They are 15 bits of a number in a request (see build-request.ts). */
const MAX_NUMBERS = 0x7fff;

/** Numbers requests whose tokens matter one by one: those that begin with given tokens, and those that tell theirs. */
export class AnswerNumbers {
  readonly #session: Pick<WllamaSession, "call">;
  readonly #loop: Pick<RequestLoop, "runBetweenPolls">;
  readonly #vocabSize: number;
  #last = 0;

  constructor(
    session: Pick<WllamaSession, "call">,
    loop: Pick<RequestLoop, "runBetweenPolls">,
    vocabSize: number,
  ) {
    this.#session = session;
    this.#loop = loop;
    this.#vocabSize = vocabSize;
  }

  /**
   * Numbers a request, and gives its answer the tokens to begin with; dispose the number when the answer has ended.
   * @throws ServiceError invalid_parameter for tokens that the model does not have, insufficient_memory when the heap has no room
   */
  async enter({ given, reportsTokens, logprobs }: GenerationRequest): Promise<AnswerNumber | undefined> {
    if (!given?.length && !reportsTokens) return undefined;
    this.#last = (this.#last % MAX_NUMBERS) + 1;
    const value = this.#last;
    if (!given?.length) return { value, [Symbol.dispose]: () => undefined };
    this.#check(given);
    const isGiven = await this.#ask("give", value, given, logprobs !== undefined);
    if (isGiven !== true) {
      const message = "The engine has no memory left for the tokens that the answer is to go on from.";
      throw new ServiceError("insufficient_memory", message);
    }
    return { value, [Symbol.dispose]: () => void this.#ask("take", value).catch(() => {}) };
  }

  /** llama.cpp would end the engine for a token that its vocabulary does not have. */
  #check(given: readonly number[]): void {
    if (given.every((token) => token < this.#vocabSize)) return;
    throw new ServiceError(
      "invalid_parameter",
      "The answer is to go on from tokens that the model does not have; begin it again.",
    );
  }

  async #ask(...args: readonly unknown[]): Promise<unknown> {
    return await this.#loop.runBetweenPolls(() => this.#session.call(GIVEN_VERB, ...args));
  }
}

/** A number under which our kernels know a request. */
interface AnswerNumber extends Disposable {
  readonly value: number;
}
