import type { Presence } from "./presence.ts";

/** How long what was lost with its machine waits for another one. */
const PATIENCE_MS = 30_000;
/** How long what has told its client nothing waits for the NATS server: the client may rather ask elsewhere, or again. */
const CUT_OFF_MS = 3000;

/** How long a request that no machine can begin with waits for one. */
export class Patience {
  readonly #continues: { readonly hasTold: boolean } | undefined;
  readonly #presence: Pick<Presence, "isConnected" | "lostMs">;
  readonly #since = performance.now();
  /** A request whose machine is gone waits for another one, as an answer does. */
  hasLost: boolean;

  /** @param continues it is an answer that has begun; whether it has told its client anything */
  constructor(
    continues: { readonly hasTold: boolean } | undefined,
    presence: Pick<Presence, "isConnected" | "lostMs">,
  ) {
    this.#continues = continues;
    this.#presence = presence;
    this.hasLost = continues !== undefined;
  }

  /** @param isCutOff machines that may have the model cannot be asked */
  isLeft(isCutOff: boolean): boolean {
    const waitedMs = performance.now() - this.#since;
    if (isCutOff && !this.#continues?.hasTold) {
      const { isConnected, lostMs } = this.#presence;
      // Not since it was tried: those before it in the line have been waiting for the same.
      if (Math.min(waitedMs, lostMs) < CUT_OFF_MS) return true;
      if (!isConnected) return false;
    }
    return this.hasLost && waitedMs < PATIENCE_MS;
  }
}
