import { ServiceError } from "../errors/service-error.ts";
import type { DaemonMessage, EngineMessage } from "./protocol/messages.ts";

/** A message of the engine that belongs to a call. */
export type CallMessage = Extract<EngineMessage, { call: number }>;

/** What a call does with the engine's messages. */
export interface CallReceiver {
  /** Takes a message; returns "done" after the last one, "unexpected" for one that does not fit this call. */
  accept(message: CallMessage): "more" | "done" | "unexpected";
  /** The call will get no more messages. */
  fail(error: Error): void;
}

interface OpenCall {
  readonly receiver: CallReceiver;
  readonly takesSlot: boolean;
  readonly stallTimer: NodeJS.Timeout;
  readonly settled: PromiseWithResolvers<void>;
}

export interface EngineCallsOptions {
  readonly slots: number;
  readonly stallTimeoutMs: number;
  readonly post: (message: DaemonMessage) => void;
  /** The engine has not said a word about one of its calls for too long. */
  readonly onStall: () => void;
}

/** The calls that an engine process works on, with a deadline for each. */
export class EngineCalls {
  readonly #options: EngineCallsOptions;
  readonly #open = new Map<number, OpenCall>();
  #lastId = 0;
  #endError: Error | undefined;

  constructor(options: EngineCallsOptions) {
    this.#options = options;
  }

  /**
   * Opens a call and sends its message.
   * @throws ServiceError internal_error when the caller has more calls in flight than there are slots: the
   *   engine would never answer the one too many
   */
  start(receiver: CallReceiver, takesSlot: boolean, message: (call: number) => DaemonMessage): number {
    if (this.#endError) throw this.#endError;
    if (takesSlot && this.#slotsTaken() >= this.#options.slots) {
      throw new ServiceError(
        "internal_error",
        `The engine got more than ${this.#options.slots} calls at once; its caller must queue them.`,
      );
    }
    const id = ++this.#lastId;
    this.#options.post(message(id));
    const stallTimer = setTimeout(this.#options.onStall, this.#options.stallTimeoutMs);
    stallTimer.unref();
    this.#open.set(id, { receiver, takesSlot, stallTimer, settled: Promise.withResolvers<void>() });
    return id;
  }

  /** Hands a message to its call. False: no call expects it, so the engine cannot be trusted. */
  receive(message: CallMessage): boolean {
    const call = this.#open.get(message.call);
    if (!call) return false;
    call.stallTimer.refresh();
    const outcome = call.receiver.accept(message);
    if (outcome === "done") this.#settle(message.call, call);
    return outcome !== "unexpected";
  }

  /** Asks the engine to give up a call and waits until its slot is free; nothing happens when it has ended. */
  async cancel(id: number): Promise<void> {
    const call = this.#open.get(id);
    if (!call) return;
    this.#options.post({ type: "cancel", call: id });
    await call.settled.promise;
  }

  /** Ends all calls; later ones are refused with the same error. */
  end(error: Error): void {
    this.#endError = error;
    for (const [id, call] of this.#open) {
      call.receiver.fail(error);
      this.#settle(id, call);
    }
  }

  #settle(id: number, call: OpenCall): void {
    clearTimeout(call.stallTimer);
    this.#open.delete(id);
    call.settled.resolve();
  }

  #slotsTaken(): number {
    let taken = 0;
    for (const call of this.#open.values()) taken += call.takesSlot ? 1 : 0;
    return taken;
  }
}
