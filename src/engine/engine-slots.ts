import { Mutex } from "../async/promises.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { Engine } from "./engine.ts";
import { type SlotRequest, type SlotResult, STATE_PIECE_BYTES, type TokenIds } from "./protocol/calls.ts";

/** One slot of an engine. */
export interface EngineSlot {
  readonly id: number;
  /** Tokens of the conversation that it has. */
  readonly tokens: number;
  readonly isBusy: boolean;
  /** Grows with each use; less than 0: never used. */
  readonly lastUsed: number;
}

/** What a slot has: the tokens of a conversation, and what the model has computed of them. */
export interface SlotState {
  readonly tokens: TokenIds;
  /** Of the model's adapters, with which it was computed. */
  readonly scales: readonly number[];
  readonly bytes: number;
  /** The state in pieces, `bytes` long in all. */
  readonly pieces: AsyncIterable<Uint8Array<ArrayBuffer>>;
}

/** Saves and restores the slots of one engine, one at a time. What the engine says is not trusted. */
export class EngineSlots {
  readonly #engine: Pick<Engine, "slots" | "info" | "spec">;
  readonly #mutex = new Mutex();

  constructor(engine: Pick<Engine, "slots" | "info" | "spec">) {
    this.#engine = engine;
  }

  async list(signal: AbortSignal): Promise<readonly EngineSlot[]> {
    const { slots } = await this.#ask({ action: "list" }, "list", signal);
    return slots.map(({ tokens, isBusy, lastUsed }, id) => ({ id, tokens, isBusy, lastUsed }));
  }

  /**
   * Has a slot's state written.
   * @param most bytes that the state may have: the engine holds it in its memory meanwhile
   * @throws ServiceError model_busy while the slot answers a request, unsupported_feature when it cannot be saved,
   *   invalid_parameter for a slot that the engine does not have, slot_state_not_found when it is empty, insufficient_disk when it is larger
   */
  async save<Result>(
    slot: number,
    write: (state: SlotState) => Promise<Result>,
    { most, signal }: { readonly most: number; readonly signal: AbortSignal },
  ): Promise<Result> {
    this.#checkSlot(slot);
    using held = new DisposableStack();
    held.use(await this.#mutex.lock(signal));
    try {
      const { bytes, tokens, scales } = await this.#ask({ action: "save", slot, most }, "save", signal);
      if (bytes > most) throw broken();
      this.#checkTokens(tokens);
      if (tokens.length === 0)
        throw new ServiceError("slot_state_not_found", `Slot ${slot} has no conversation to save.`);
      if (scales.length !== this.#engine.spec.adapters.length) throw broken();
      return await write({ bytes, tokens, scales, pieces: this.#read(bytes, signal) });
    } finally {
      await this.#drop();
    }
  }

  /**
   * Puts a state into a slot, in place of what it has. When reading its pieces throws, the slot stays as it is.
   * @throws ServiceError slot_state_mismatch when it is not one of this model, or does not fit
   */
  async restore(
    slot: number,
    { tokens, scales, bytes, pieces }: SlotState,
    signal: AbortSignal,
  ): Promise<void> {
    this.#checkSlot(slot);
    using held = new DisposableStack();
    held.use(await this.#mutex.lock(signal));
    try {
      await this.#ask({ action: "begin", bytes }, "done", signal);
      let offset = 0;
      for await (const data of pieces) {
        await this.#ask({ action: "write", offset, data }, "done", signal);
        offset += data.length;
      }
      await this.#ask({ action: "restore", slot, tokens, scales: [...scales] }, "done", signal);
    } finally {
      await this.#drop();
    }
  }

  /** Empties an idle slot, and returns how many tokens it had. */
  async erase(slot: number, signal: AbortSignal): Promise<number> {
    this.#checkSlot(slot);
    return (await this.#ask({ action: "erase", slot }, "erase", signal)).tokens;
  }

  /** Keeps a slot for requests that name it; returns whether another request has it still. */
  async reserve(slot: number, signal: AbortSignal): Promise<boolean> {
    this.#checkSlot(slot);
    return (await this.#ask({ action: "reserve", slot }, "reserve", signal)).isBusy;
  }

  /** Ends what {@link reserve} began. */
  async release(slot: number, signal: AbortSignal): Promise<void> {
    await this.#ask({ action: "release", slot }, "done", signal);
  }

  async *#read(bytes: number, signal: AbortSignal): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
    for (let offset = 0; offset < bytes; offset += STATE_PIECE_BYTES) {
      const { data } = await this.#ask({ action: "read", offset }, "read", signal);
      if (data.length !== Math.min(STATE_PIECE_BYTES, bytes - offset)) throw broken();
      yield data;
    }
  }

  /**
   * The engine frees the memory of the state that it holds, also for a client who has left while it began to hold it; one that
   * has ended has none.
   */
  async #drop(): Promise<void> {
    await this.#ask({ action: "drop" }, "done", new AbortController().signal).catch(() => undefined);
  }

  /** Requests choose any number; an engine ends at a message that is not valid. */
  #checkSlot(slot: number): void {
    if (slot < this.#engine.spec.slots) return;
    throw new ServiceError(
      "invalid_parameter",
      "The model has no slot of this number; GET the slots to see which there are.",
    );
  }

  #checkTokens(tokens: TokenIds): void {
    const { vocabSize, contextSize } = this.#engine.info;
    if (tokens.length > contextSize || tokens.some((token) => token < 0 || token >= vocabSize))
      throw broken();
  }

  async #ask<Action extends SlotResult["action"]>(
    request: SlotRequest,
    expected: Action,
    signal: AbortSignal,
  ): Promise<Extract<SlotResult, { action: Action }>> {
    const result = await this.#engine.slots(request, signal);
    if (!isOf(result, expected)) throw broken();
    return result;
  }
}

function isOf<Action extends SlotResult["action"]>(
  result: SlotResult,
  action: Action,
): result is Extract<SlotResult, { action: Action }> {
  return result.action === action;
}

function broken(): ServiceError {
  return new ServiceError("inference_failed", "The engine's answer about its slots makes no sense.");
}
