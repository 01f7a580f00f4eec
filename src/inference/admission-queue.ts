import { ServiceError } from "../errors/service-error.ts";

/** Retry-After before any request has ended: the time of a short answer of a small model on a laptop. */
const DEFAULT_HOLD_SECS = 5;
/** Weight of the newest duration in the running mean of about the last ten requests. */
const MEAN_WEIGHT = 0.2;
/** A longer estimate would be meaningless, and a client would rather ask elsewhere. */
const MAX_RETRY_AFTER_SECS = 120;

/** The right to have one call in flight on an engine. Disposing it twice frees it once. */
export interface Permit extends Disposable {
  readonly queue: AdmissionQueue;
  /** As in {@link AdmissionRequest}. */
  readonly group: string;
  /** As in {@link AdmissionRequest}. */
  readonly onYield: (() => void) | undefined;
  /** Tokens of context that it holds. */
  readonly tokens: number;
  /** Asks one more call in the background to end, which may have the slot that this one waits for. */
  makeWay(): void;
  /** Resolves when any permit of the queue has been released after this call. */
  nextRelease(): Promise<void>;
  /** Corrects the number of tokens once it is known better; others may then be admitted. */
  resize(tokens: number): void;
  /**
   * Takes more tokens from what nobody holds, also while others wait for them: an answer that has begun comes first.
   * Returns false, and takes none, if there is not that much.
   */
  grow(tokens: number): boolean;
}

type Wish = Required<Pick<AdmissionRequest, "tokens" | "group">> & Pick<AdmissionRequest, "onYield" | "slot">;

interface Waiter extends Wish {
  grant(): void;
  refuse(error: ServiceError): void;
}

export interface AdmissionRequest {
  /** Tokens of context that the call may need, at most all of them. Default: none. */
  tokens?: number;
  /** Whether the call belongs to an admitted request, such as the next text of a batch. Default: false. */
  bypassQueueLimit?: boolean;
  /** False: refuse a call that cannot run at once, or as soon as one in the background has ended for it. Default: true. */
  mayWait?: boolean | undefined;
  /** Only calls of the same group run at once. Default: "". */
  group?: string;
  /** Of calls that name the same slot only one runs at once; the others do not hold up those behind them. */
  slot?: number | undefined;
  /**
   * For a call in the background: it waits behind all others, beyond the limit of the queue, and is told by this to end
   * when one of those waits. It should then release its permit soon.
   */
  onYield?: (() => void) | undefined;
}

/** A permit of a call in the background. */
interface Yielding extends Pick<AdmissionRequest, "slot"> {
  readonly onYield: () => void;
  isAsked: boolean;
}

interface AdmissionQueueOptions {
  /** Calls in flight at once. */
  slots: number;
  /** Tokens of context of all calls together; absent: unlimited. */
  contextTokens?: number;
  /** Maximum number of waiting callers; the next one is refused. */
  maxWaiting: number;
  /** Milliseconds since any origin. */
  now?: () => number;
}

/**
 * Admits calls to one engine, first come, first served; those in the background after all others. Invariants: at most
 * `slots` permits are held, and the tokens they may need fit into the context together, unless a holder corrects its own upward; all permits are of one group; a caller that could be admitted only waits behind others; each permit is
 * released exactly once.
 */
export class AdmissionQueue {
  readonly #slots: number;
  readonly #contextTokens: number;
  readonly #maxWaiting: number;
  readonly #now: () => number;
  /** A Set keeps the order of arrival and removes in constant time. */
  readonly #waiting = new Set<Waiter>();
  readonly #waitingBehind = new Set<Waiter>();
  /** Held in the background, the oldest first. */
  readonly #yielding = new Set<Yielding>();
  #running = 0;
  /** Named by those that run. */
  readonly #namedSlots = new Set<number>();
  #nextRelease = Promise.withResolvers<void>();
  /** Of those that run. */
  #group = "";
  #tokens = 0;
  #meanHoldSecs = DEFAULT_HOLD_SECS;
  #closedWith: (() => ServiceError) | undefined;

  constructor({
    slots,
    contextTokens = Number.POSITIVE_INFINITY,
    maxWaiting,
    now = () => performance.now(),
  }: AdmissionQueueOptions) {
    this.#slots = slots;
    this.#contextTokens = contextTokens;
    this.#maxWaiting = maxWaiting;
    this.#now = now;
  }

  get slots(): number {
    return this.#slots;
  }

  /** Permits that are held. */
  get running(): number {
    return this.#running;
  }

  /** Of those, the ones in the background, which make room for others. */
  get yielding(): number {
    return this.#yielding.size;
  }

  /** Those in the background are not counted. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** The part of the context, from 0 to 1, that permits hold; 0 where the context is unlimited. */
  get contextUsage(): number {
    return this.#tokens / this.#contextTokens;
  }

  /** Whether a permit is held by a call that names this slot. */
  isNamed(slot: number): boolean {
    return this.#namedSlots.has(slot);
  }

  /** Estimated seconds until a new caller gets a permit, from the mean time that permits are held. */
  get retryAfterSecs(): number {
    const estimate = Math.ceil(((this.#waiting.size + 1) * this.#meanHoldSecs) / this.#slots);
    return Math.min(Math.max(estimate, 1), MAX_RETRY_AFTER_SECS);
  }

  /**
   * Resolves with a permit when it is this caller's turn. Rejects with `overloaded` if too many wait, with the signal's
   * reason if it aborts first, and with the closing error if the engine has ended.
   */
  async acquire(
    signal: AbortSignal,
    {
      tokens: wished = 0,
      bypassQueueLimit = false,
      mayWait = true,
      group = "",
      slot,
      onYield,
    }: AdmissionRequest = {},
  ): Promise<Permit> {
    signal.throwIfAborted();
    if (this.#closedWith) throw this.#closedWith();
    const wish: Wish = { tokens: Math.min(wished, this.#contextTokens), group, slot, onYield };
    const line = onYield ? this.#waitingBehind : this.#waiting;
    const isNext = [...this.#waiting, ...line].every((waiter) => this.#isForSlot(waiter));
    if (isNext && !this.#isForSlot(wish) && this.#hasRoom(wish)) return this.#take(wish);
    const mustWait = this.#waiting.size >= this.#yielding.size;
    if ((!mayWait && mustWait) || (!bypassQueueLimit && !onYield && this.#waiting.size >= this.#maxWaiting)) {
      const retryAfterSecs = this.retryAfterSecs;
      throw new ServiceError(
        "overloaded",
        `All slots or the whole context of the model are in use, and ${this.#waiting.size} requests are waiting; ` +
          `try again in about ${retryAfterSecs} s.`,
        { retryAfterSecs },
      );
    }
    return new Promise<Permit>((resolve, reject) => {
      const leave = () => {
        line.delete(waiter);
        signal.removeEventListener("abort", onAbort);
      };
      const onAbort = () => {
        leave();
        reject(signal.reason);
        // Later callers may fit even if this one did not.
        this.#grant();
      };
      const waiter: Waiter = {
        ...wish,
        grant: () => {
          leave();
          resolve(this.#take(wish));
        },
        refuse: (error) => {
          leave();
          reject(error);
        },
      };
      line.add(waiter);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#makeWay();
    });
  }

  /** Refuses all waiting and later callers. Held permits are released by their holders. */
  close(makeError: () => ServiceError): void {
    this.#closedWith ??= makeError;
    for (const waiter of [...this.#waiting, ...this.#waitingBehind]) waiter.refuse(this.#closedWith());
  }

  /** Whether a call waits for another one that has the slot which it names. */
  #isForSlot({ slot }: Wish): boolean {
    return slot !== undefined && this.#namedSlots.has(slot);
  }

  #hasRoom({ tokens, group }: Wish): boolean {
    if (this.#running > 0 && group !== this.#group) return false;
    return this.#running < this.#slots && this.#tokens + tokens <= this.#contextTokens;
  }

  /**
   * Admits waiting callers in order. One that does not fit blocks those after it, or it might never get its turn; one whose
   * slot is taken gets that in its turn all the same.
   */
  #grant(): void {
    if (this.#closedWith) return;
    for (const waiter of [...this.#waiting, ...this.#waitingBehind]) {
      if (this.#isForSlot(waiter)) continue;
      if (!this.#hasRoom(waiter)) break;
      waiter.grant();
    }
    this.#makeWay();
  }

  /**
   * Asks as many calls in the background to end as others wait: those that have a slot which another one names, and then those
   * that have begun last, which have done the least.
   * @param further calls that need more room, or a slot
   */
  #makeWay(further = 0): void {
    const held = [...this.#yielding].toReversed();
    const holderOf = ({ slot }: Wish) => held.find((each) => slot !== undefined && each.slot === slot);
    const waiting = [...this.#waiting].filter((waiter) => !this.#isForSlot(waiter) || holderOf(waiter));
    for (const waiter of waiting) ask(holderOf(waiter));
    let missing = waiting.length + further - held.filter(({ isAsked }) => isAsked).length;
    for (const each of held) {
      if (missing <= 0) return;
      if (ask(each)) missing -= 1;
    }
  }

  #take({ tokens: wished, group, slot, onYield }: Wish): Permit {
    let tokens = wished;
    const yielding = onYield && { onYield, slot, isAsked: false };
    if (yielding) this.#yielding.add(yielding);
    this.#running += 1;
    if (slot !== undefined) this.#namedSlots.add(slot);
    this.#group = group;
    this.#tokens += tokens;
    const takenAt = this.#now();
    let free = false;
    const resize = (better: number): void => {
      if (free) return;
      this.#tokens += better - tokens;
      tokens = better;
      this.#grant();
    };
    return {
      queue: this,
      group,
      onYield,
      get tokens() {
        return tokens;
      },
      makeWay: () => {
        if (!onYield) this.#makeWay(1);
      },
      nextRelease: () => this.#nextRelease.promise,
      resize: (better) => resize(Math.min(better, this.#contextTokens)),
      grow: (further) => {
        if (free) return false;
        if (this.#tokens + further > this.#contextTokens) {
          if (!onYield) this.#makeWay(1);
          return false;
        }
        this.#tokens += further;
        tokens += further;
        return true;
      },
      [Symbol.dispose]: () => {
        if (free) return;
        const heldSecs = (this.#now() - takenAt) / 1000;
        this.#meanHoldSecs += MEAN_WEIGHT * (heldSecs - this.#meanHoldSecs);
        this.#running -= 1;
        if (yielding) this.#yielding.delete(yielding);
        if (slot !== undefined) this.#namedSlots.delete(slot);
        this.#nextRelease.resolve();
        this.#nextRelease = Promise.withResolvers();
        resize(0);
        free = true;
      },
    };
  }
}

/** Asks a call in the background to end, unless it has been asked. */
function ask(call: Yielding | undefined): boolean {
  if (!call || call.isAsked) return false;
  call.isAsked = true;
  call.onYield();
  return true;
}
