import { abortable } from "../async/promises.ts";
import { Watchdog } from "../async/timers.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { DaemonMessage, EngineMessage } from "./protocol/messages.ts";

/** A message from the engine that belongs to a call. */
export type CallMessage = Extract<EngineMessage, { call: number }>;

export interface CallReceiver {
  /** Handles a message; returns "done" after the last one, "unexpected" for one that does not belong to this call. */
  accept(message: CallMessage): "more" | "done" | "unexpected";
  /** Fails the call; no more messages will come. */
  fail(error: Error): void;
}

interface OpenCall extends SlotNeed {
  readonly receiver: CallReceiver;
  readonly stalling: Watchdog;
  readonly settled: PromiseWithResolvers<void>;
  /** The caller has cancelled, but the engine has not confirmed yet; messages are ignored. */
  abandoned: boolean;
}

interface SlotNeed {
  readonly takesSlot: boolean;
  /** The slot that the request names. */
  readonly slot?: number | undefined;
}

interface CallDispatcherOptions {
  readonly slots: number;
  readonly stallTimeoutMs: number;
  readonly post: (message: DaemonMessage) => void;
  /** Called when the engine has not sent anything about a call for too long. */
  readonly onStall: () => void;
  /** Called when the engine has not confirmed a cancellation within `allowedMs`. */
  readonly onUnresponsive: (allowedMs: number) => void;
}

/** Longest wait of a canceller for the engine's confirmation, so that its queue permit is free within a second. */
const CANCEL_WAIT_MS = 500;

/** Sends calls to an engine process and routes its answers to them, with a deadline for each. */
export class CallDispatcher {
  readonly #options: CallDispatcherOptions;
  readonly #open = new Map<number, OpenCall>();
  readonly #cancelDeadline = new CancelDeadline();
  readonly #reserved = new Set<number>();
  /** Resolves when a slot may have become free. */
  #nextChange = Promise.withResolvers<void>();
  #lastId = 0;
  #endError: Error | undefined;

  constructor(options: CallDispatcherOptions) {
    this.#options = options;
  }

  /**
   * Sends a call. A call that takes a slot first waits while cancelled calls occupy all slots that are not reserved for
   * others: llama.cpp would give it a reserved one.
   * @throws ServiceError internal_error when the caller has more calls in flight than there are slots, since the engine
   *   would never answer; the signal's reason when it aborts before the message is sent
   */
  async start(
    receiver: CallReceiver,
    need: SlotNeed,
    signal: AbortSignal,
    message: (call: number) => DaemonMessage,
  ): Promise<number> {
    const isFull = (): boolean =>
      this.#slotsTaken() + this.#reservedForOthers(need.slot) >= this.#options.slots;
    if (need.takesSlot) while (isFull()) await this.#waitForSlot(signal);
    if (this.#endError) throw this.#endError;
    const id = ++this.#lastId;
    this.#options.post(message(id));
    const stalling = new Watchdog(this.#options.stallTimeoutMs, this.#options.onStall);
    const settled = Promise.withResolvers<void>();
    if (need.takesSlot) this.#cancelDeadline.workBegins();
    this.#open.set(id, { ...need, receiver, stalling, settled, abandoned: false });
    return id;
  }

  /** Passes a message to its call. Returns false when no call expects it, so the engine cannot be trusted. */
  receive(message: CallMessage): boolean {
    const call = this.#open.get(message.call);
    if (!call) return false;
    call.stalling.reset();
    // Reports of memory come even in the middle of a step, so they say nothing about its length.
    if (message.type !== "memory") this.#cancelDeadline.messageReceived();
    const outcome = call.receiver.accept(message);
    if (outcome === "done") this.#settle(message.call, call);
    return outcome !== "unexpected";
  }

  /**
   * Asks the engine to cancel a call; does nothing when the call has ended. Resolves when its slot is free, or after
   * {@link CANCEL_WAIT_MS}, in which case later calls wait for the slot. Reports the engine as unresponsive when it
   * keeps the slot for longer than its steps can explain.
   */
  async cancel(id: number): Promise<void> {
    const call = this.#open.get(id);
    if (!call) return;
    if (!call.abandoned) {
      this.#options.post({ type: "cancel", call: id });
      call.abandoned = true;
      this.#watchCancel(call);
    }
    const timeout = Promise.withResolvers<void>();
    const timer = setTimeout(timeout.resolve, CANCEL_WAIT_MS);
    await Promise.race([call.settled.promise, timeout.promise]);
    clearTimeout(timer);
  }

  /** Records that the engine reserves a slot for calls that name it. */
  reserveSlot(slot: number): void {
    this.#reserved.add(slot);
  }

  /** Undoes {@link reserveSlot}. */
  releaseSlot(slot: number): void {
    this.#reserved.delete(slot);
    this.#wakeWaiters();
  }

  /** Fails all calls, and later ones, with this error. */
  end(error: Error): void {
    this.#endError = error;
    for (const [id, call] of this.#open) {
      call.receiver.fail(error);
      this.#settle(id, call);
    }
  }

  #watchCancel(call: OpenCall): void {
    const allowedMs = Math.min(this.#cancelDeadline.allowedMs, this.#options.stallTimeoutMs);
    const watchdog = new Watchdog(allowedMs, () => this.#options.onUnresponsive(allowedMs));
    void call.settled.promise.then(() => watchdog.stop());
  }

  /** Resolves when the engine has finished a call, or a reservation has ended. */
  async #waitForSlot(signal: AbortSignal): Promise<void> {
    if (![...this.#open.values()].some((call) => call.takesSlot && call.abandoned)) {
      throw new ServiceError(
        "internal_error",
        `The engine received more than ${this.#options.slots} concurrent calls; the caller must queue them.`,
      );
    }
    await abortable(this.#nextChange.promise, signal);
  }

  #wakeWaiters(): void {
    this.#nextChange.resolve();
    this.#nextChange = Promise.withResolvers();
  }

  #settle(id: number, call: OpenCall): void {
    call.stalling.stop();
    this.#open.delete(id);
    if (call.takesSlot && this.#slotsTaken() === 0) this.#cancelDeadline.workEnds();
    call.settled.resolve();
    this.#wakeWaiters();
  }

  /** Number of reserved slots that neither this call nor a call in flight names. */
  #reservedForOthers(requested: number | undefined): number {
    const named = new Set([requested, ...Array.from(this.#open.values(), ({ slot }) => slot)]);
    return [...this.#reserved].filter((slot) => !named.has(slot)).length;
  }

  #slotsTaken(): number {
    let taken = 0;
    for (const call of this.#open.values()) taken += call.takesSlot ? 1 : 0;
    return taken;
  }
}

/**
 * Shortest deadline, for a busy machine on which the process does not run for a while. Ending the engine costs a load
 * of the model and all its other answers.
 */
const MIN_CANCEL_MS = 5000;

/** Longest deadline, so that no request waits longer for a slot even when the model's steps take minutes. */
const MAX_CANCEL_MS = 30_000;

/** Steps allowed. They differ in length: the first ones include compilation, later ones have a longer context. */
const STEPS_PER_CANCEL = 3;

/** Deadline while the step time is not known; the machine may be slow. */
const DEFAULT_CANCEL_MS = 10_000;

/**
 * Computes how long an engine may keep working on a cancelled call before it counts as unresponsive. llama.cpp checks
 * for cancellation between steps, so a healthy engine is silent for one step at most, and its longest silence so far is
 * the length of a step. After a suspension the engine only looks slower than it is.
 */
export class CancelDeadline {
  readonly #now: () => number;
  /** When the engine last sent a message or began to work; undefined while it is idle. */
  #silentSince: number | undefined;
  #longestSilenceMs: number | undefined;

  /** @param now milliseconds since any origin */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Milliseconds allowed after a cancellation. */
  get allowedMs(): number {
    const longestMs = this.#longestSilenceMs;
    if (longestMs === undefined) return DEFAULT_CANCEL_MS;
    return Math.min(MAX_CANCEL_MS, Math.max(MIN_CANCEL_MS, STEPS_PER_CANCEL * longestMs));
  }

  workBegins(): void {
    this.#silentSince ??= this.#now();
  }

  messageReceived(): void {
    if (this.#silentSince === undefined) return;
    const now = this.#now();
    this.#longestSilenceMs = Math.max(this.#longestSilenceMs ?? 0, now - this.#silentSince);
    this.#silentSince = now;
  }

  workEnds(): void {
    this.#silentSince = undefined;
  }
}
