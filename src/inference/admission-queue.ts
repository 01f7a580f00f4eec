import { ServiceError } from "../errors/service-error.ts";

/** Retry-After until a first request has ended: time for a short answer of a small model on a laptop. */
const DEFAULT_HOLD_SECS = 5;
/** Weight of the newest duration in the moving average, which covers about ten requests. */
const MEAN_WEIGHT = 0.2;
/** Longest Retry-After: a longer estimate is unreliable, and the client had better try another server. */
const MAX_RETRY_AFTER_SECS = 120;

/** The right to have one call in flight on an engine. Disposing it twice frees it once. */
export interface Permit extends Disposable {
  readonly queue: AdmissionQueue;
  /** As in {@link AdmissionRequest}. */
  readonly group: string;
  /** As in {@link AdmissionRequest}. */
  readonly onPreempt: (() => void) | undefined;
  /** Context tokens reserved. */
  readonly tokens: number;
  /** Preempts one more low-priority call, because it may occupy the slot that this call waits for. */
  preemptOne(): void;
  /** Resolves when any permit of the queue is released after this call. */
  nextRelease(): Promise<void>;
  /** Corrects the number of reserved tokens; waiting calls may then be admitted. */
  resize(tokens: number): void;
  /**
   * Reserves more of the free tokens, even if other calls wait for them: a running answer comes first. Returns false
   * and reserves nothing if too few are free.
   */
  grow(tokens: number): boolean;
}

type SlotRequest = Required<Pick<AdmissionRequest, "tokens" | "group">> &
  Pick<AdmissionRequest, "onPreempt" | "slot">;

interface Waiter extends SlotRequest {
  grant(): void;
  refuse(error: ServiceError): void;
}

export interface AdmissionRequest {
  /** Context tokens to reserve; more than the context has counts as all of it. Default: 0. */
  tokens?: number;
  /** True if the call belongs to an admitted request, such as the next text of a batch. Default: false. */
  bypassQueueLimit?: boolean;
  /** False: refuse the call unless it can run at once or after a preemption. Default: true. */
  mayWait?: boolean | undefined;
  /** Calls of different groups never run at the same time. Default: "". */
  group?: string;
  /** Slot that the call requires. Calls for the same slot run one by one, without blocking the calls behind them. */
  slot?: number | undefined;
  /**
   * Marks a low-priority call: it waits behind all others and is not subject to the queue limit. The function is called
   * when another call needs the slot; the call should then release its permit soon.
   */
  onPreempt?: (() => void) | undefined;
}

/** Running call that other calls may preempt. */
interface LowPriorityCall extends Pick<AdmissionRequest, "slot"> {
  readonly onPreempt: () => void;
  isPreempted: boolean;
}

interface AdmissionQueueOptions {
  /** Most calls in flight. */
  slots: number;
  /** Context tokens shared by all calls; absent: unlimited. */
  contextTokens?: number;
  /** Most waiting callers; the next one is refused. */
  maxWaiting: number;
  /** Milliseconds since any origin. */
  now?: () => number;
}

/**
 * Admits calls to one engine in order of arrival, low-priority calls last. Invariants: at most `slots` permits are
 * held; their reserved tokens fit into the context together, unless a holder resizes its own upward; all permits are of
 * one group; a call that fits waits only if another one is ahead of it; each permit is released exactly once.
 */
export class AdmissionQueue {
  readonly #slots: number;
  readonly #contextTokens: number;
  readonly #maxWaiting: number;
  readonly #now: () => number;
  /** Set, because it has the order of arrival and removes in constant time. */
  readonly #waiting = new Set<Waiter>();
  readonly #waitingLowPriority = new Set<Waiter>();
  /** Running low-priority calls, oldest first. */
  readonly #lowPriority = new Set<LowPriorityCall>();
  #running = 0;
  /** Slots required by running calls. */
  readonly #takenSlots = new Set<number>();
  #nextRelease = Promise.withResolvers<void>();
  /** Group of the running calls. */
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

  /** Number of permits in use. */
  get running(): number {
    return this.#running;
  }

  /** Number of permits in use by low-priority calls. */
  get lowPriority(): number {
    return this.#lowPriority.size;
  }

  /** Number of waiting calls without the low-priority ones. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Reserved part of the context, from 0 to 1; 0 if the context is unlimited. */
  get contextUsage(): number {
    return this.#tokens / this.#contextTokens;
  }

  /** True if a running call requires this slot. */
  isSlotTaken(slot: number): boolean {
    return this.#takenSlots.has(slot);
  }

  /** Estimated seconds until a new call is admitted, from the mean time of a call. */
  get retryAfterSecs(): number {
    const estimate = Math.ceil(((this.#waiting.size + 1) * this.#meanHoldSecs) / this.#slots);
    return Math.min(Math.max(estimate, 1), MAX_RETRY_AFTER_SECS);
  }

  /**
   * Resolves with a permit once the call is admitted. Rejects with `overloaded` if too many calls wait, with the
   * signal's reason if it aborts first, and with the closing error if the engine has ended.
   */
  async acquire(
    signal: AbortSignal,
    {
      tokens: requestedTokens = 0,
      bypassQueueLimit = false,
      mayWait = true,
      group = "",
      slot,
      onPreempt,
    }: AdmissionRequest = {},
  ): Promise<Permit> {
    signal.throwIfAborted();
    if (this.#closedWith) throw this.#closedWith();
    const request: SlotRequest = {
      tokens: Math.min(requestedTokens, this.#contextTokens),
      group,
      slot,
      onPreempt,
    };
    const line = onPreempt ? this.#waitingLowPriority : this.#waiting;
    const isNext = [...this.#waiting, ...line].every((waiter) => this.#waitsForSlot(waiter));
    if (isNext && !this.#waitsForSlot(request) && this.#fits(request)) return this.#take(request);
    const mustWait = this.#waiting.size >= this.#lowPriority.size;
    if (
      (!mayWait && mustWait) ||
      (!bypassQueueLimit && !onPreempt && this.#waiting.size >= this.#maxWaiting)
    ) {
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
        // The callers behind this one may fit even if this one did not.
        this.#grant();
      };
      const waiter: Waiter = {
        ...request,
        grant: () => {
          leave();
          resolve(this.#take(request));
        },
        refuse: (error) => {
          leave();
          reject(error);
        },
      };
      line.add(waiter);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#preempt();
    });
  }

  /** Refuses all waiting and later callers. Permits in use stay valid until their holders release them. */
  close(makeError: () => ServiceError): void {
    this.#closedWith ??= makeError;
    for (const waiter of [...this.#waiting, ...this.#waitingLowPriority]) waiter.refuse(this.#closedWith());
  }

  /** True if the slot that a call requires is taken by another one. */
  #waitsForSlot({ slot }: SlotRequest): boolean {
    return slot !== undefined && this.#takenSlots.has(slot);
  }

  #fits({ tokens, group }: SlotRequest): boolean {
    if (this.#running > 0 && group !== this.#group) return false;
    return this.#running < this.#slots && this.#tokens + tokens <= this.#contextTokens;
  }

  /**
   * Admits waiting callers in order. A caller that does not fit blocks the ones behind it, or it might wait forever. A
   * caller whose slot is taken is skipped, because the slot passes to it in order anyway.
   */
  #grant(): void {
    if (this.#closedWith) return;
    for (const waiter of [...this.#waiting, ...this.#waitingLowPriority]) {
      if (this.#waitsForSlot(waiter)) continue;
      if (!this.#fits(waiter)) break;
      waiter.grant();
    }
    this.#preempt();
  }

  /**
   * Preempts as many low-priority calls as there are waiting calls: first the ones whose slot a waiting call requires,
   * then the newest, which lose the least work.
   * @param further running calls that also need context or a slot
   */
  #preempt(further = 0): void {
    const running = [...this.#lowPriority].toReversed();
    const holderOf = ({ slot }: SlotRequest) =>
      running.find((each) => slot !== undefined && each.slot === slot);
    const waiting = [...this.#waiting].filter((waiter) => !this.#waitsForSlot(waiter) || holderOf(waiter));
    for (const waiter of waiting) preempt(holderOf(waiter));
    let missing = waiting.length + further - running.filter(({ isPreempted }) => isPreempted).length;
    for (const each of running) {
      if (missing <= 0) return;
      if (preempt(each)) missing -= 1;
    }
  }

  #take({ tokens: requestedTokens, group, slot, onPreempt }: SlotRequest): Permit {
    let tokens = requestedTokens;
    const lowPriority = onPreempt && { onPreempt, slot, isPreempted: false };
    if (lowPriority) this.#lowPriority.add(lowPriority);
    this.#running += 1;
    if (slot !== undefined) this.#takenSlots.add(slot);
    this.#group = group;
    this.#tokens += tokens;
    const takenAt = this.#now();
    let isReleased = false;
    const resize = (corrected: number): void => {
      if (isReleased) return;
      this.#tokens += corrected - tokens;
      tokens = corrected;
      this.#grant();
    };
    return {
      queue: this,
      group,
      onPreempt,
      get tokens() {
        return tokens;
      },
      preemptOne: () => {
        if (!onPreempt) this.#preempt(1);
      },
      nextRelease: () => this.#nextRelease.promise,
      resize: (corrected) => resize(Math.min(corrected, this.#contextTokens)),
      grow: (further) => {
        if (isReleased) return false;
        if (this.#tokens + further > this.#contextTokens) {
          if (!onPreempt) this.#preempt(1);
          return false;
        }
        this.#tokens += further;
        tokens += further;
        return true;
      },
      [Symbol.dispose]: () => {
        if (isReleased) return;
        const heldSecs = (this.#now() - takenAt) / 1000;
        this.#meanHoldSecs += MEAN_WEIGHT * (heldSecs - this.#meanHoldSecs);
        this.#running -= 1;
        if (lowPriority) this.#lowPriority.delete(lowPriority);
        if (slot !== undefined) this.#takenSlots.delete(slot);
        this.#nextRelease.resolve();
        this.#nextRelease = Promise.withResolvers();
        resize(0);
        isReleased = true;
      },
    };
  }
}

/** Preempts a low-priority call; returns false if there is none or it has been preempted already. */
function preempt(call: LowPriorityCall | undefined): boolean {
  if (!call || call.isPreempted) return false;
  call.isPreempted = true;
  call.onPreempt();
  return true;
}
