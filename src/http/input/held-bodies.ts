import { ServiceError } from "../../errors/service-error.ts";

/** So many of the largest bodies may be held at once; what they become takes up to four times as much memory. */
const LARGEST_BODIES = 4;

/** The beginning of each body is not counted, so that ordinary requests pass while others fill what there is. */
const UNCOUNTED = 64 * 1024;

/** The bytes of all bodies whose requests are under way: what many clients send at once is bounded like one's. */
export class HeldBodies {
  readonly #limit: number;
  #held = 0;

  /** @param bodyLimit largest body in bytes */
  constructor(bodyLimit: number) {
    this.#limit = LARGEST_BODIES * bodyLimit;
  }

  /** Bytes held now, beyond the beginnings. */
  get held(): number {
    return this.#held;
  }

  begin(): HeldBody {
    let own = -UNCOUNTED;
    let isOver = false;
    return {
      add: (bytes) => {
        const before = Math.max(0, own);
        own += bytes;
        const counted = Math.max(0, own) - before;
        if (isOver || counted === 0) return;
        this.#held += counted;
        if (this.#held <= this.#limit) return;
        throw new ServiceError(
          "overloaded",
          "The bodies of all current requests together are too large; try again in a moment.",
        );
      },
      release: () => {
        if (isOver) return;
        isOver = true;
        this.#held -= Math.max(0, own);
      },
    };
  }
}

/** One body, from its first byte to the end of its request. */
export interface HeldBody {
  /** @throws ServiceError overloaded when all bodies together are too large */
  add(bytes: number): void;
  /** Safe to call twice. */
  release(): void;
}
