import { ServiceError } from "../../errors/service-error.ts";

/** How many of the largest bodies may be in memory at once; parsed, they take up to four times as much. */
const LARGEST_BODIES = 4;

/** The beginning of each body is not counted, so that normal requests pass when others have used up the limit. */
const UNCOUNTED = 64 * 1024;

/** Limits the bytes of the bodies of all current requests together. */
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
interface HeldBody {
  /** @throws ServiceError overloaded when all bodies together are too large */
  add(bytes: number): void;
  /** Safe to call twice. */
  release(): void;
}
