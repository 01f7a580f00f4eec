/** How long what was lost with its machine waits for another one. */
const PATIENCE_MS = 30_000;
/** How long what has told its client nothing waits for the NATS server: the client may rather ask elsewhere, or again. */
const CUT_OFF_MS = 3000;

/** How long a request that no machine can begin with waits for one. */
export class Patience {
  readonly #continues: { readonly hasTold: boolean } | undefined;
  readonly #isConnected: () => boolean;
  readonly #until = performance.now() + PATIENCE_MS;
  #cutOffAt: number | undefined;
  /** A request whose machine is gone waits for another one, as an answer does. */
  hasLost: boolean;

  /** @param continues it is an answer that has begun; whether it has told its client anything */
  constructor(continues: { readonly hasTold: boolean } | undefined, isConnected: () => boolean) {
    this.#continues = continues;
    this.#isConnected = isConnected;
    this.hasLost = continues !== undefined;
  }

  /** @param isCutOff machines that may have the model cannot be asked */
  isLeft(isCutOff: boolean): boolean {
    const now = performance.now();
    this.#cutOffAt = isCutOff ? (this.#cutOffAt ?? now) : undefined;
    if (this.#cutOffAt !== undefined && !this.#continues?.hasTold) {
      if (now < this.#cutOffAt + CUT_OFF_MS) return true;
      if (!this.#isConnected()) return false;
    }
    return this.hasLost && now < this.#until;
  }
}
