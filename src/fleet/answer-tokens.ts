import { MOST_GIVEN_TOKENS } from "../engine/protocol/generation.ts";
import type { ChosenTokens, InferenceRequest } from "../inference/inference.ts";

/**
 * The tokens of an answer, as the machines that give it tell them, before the text of each. Another machine goes on from them:
 * it says them again, and then what comes next.
 */
export class AnswerTokens {
  readonly #ids: number[] = [];
  /** How many of them the machine has told that gives the answer now. */
  #told = 0;
  #replaced = 0;
  #failedTries = 0;

  /** Those that have been replaced on the way: other ones would have been the choice of the machine that has gone on with them. */
  get replaced(): number {
    return this.#replaced;
  }

  /** What the next machine goes on from: the beginning, where no tokens are known. */
  get begun(): Pick<InferenceRequest, "given" | "failedTries"> {
    const failedTries = this.#failedTries;
    const isKnown = this.#ids.length > 0 && this.#ids.length <= MOST_GIVEN_TOKENS;
    return { failedTries, ...(isKnown && { given: [...this.#ids] }) };
  }

  /** Another machine gives the answer, which tells all tokens again. */
  rewind(): void {
    this.#told = 0;
  }

  take({ ids, replaced, failedTries = 0 }: ChosenTokens): void {
    if (failedTries !== this.#failedTries) this.#beginAgain(failedTries);
    this.#replaced += replaced;
    for (const id of ids) {
      // One that has not gone on from these tokens, but begun again, may say others.
      if (this.#ids[this.#told] !== id) this.#ids.length = this.#told;
      // One more than can be given says that there are too many.
      if (this.#ids.length > MOST_GIVEN_TOKENS) return;
      this.#ids[this.#told] = id;
      this.#told += 1;
    }
  }

  /** An answer did not fit, and another one is generated, of which nothing is known. */
  #beginAgain(failedTries: number): void {
    this.#failedTries = failedTries;
    this.#ids.length = 0;
    this.#told = this.#replaced = 0;
  }
}
