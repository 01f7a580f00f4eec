import { Mutex } from "../async/promises.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { Engine } from "./engine.ts";
import {
  type SlotList,
  type SlotRequest,
  type SlotResult,
  STATE_CHUNK_BYTES,
  type TokenIds,
} from "./protocol/calls.ts";

export interface EngineSlot extends Readonly<SlotList[number]> {
  readonly id: number;
}

/** State of a slot: the tokens of a conversation and their KV cache. */
export interface SlotState {
  readonly tokens: TokenIds;
  /** Scales of the model's LoRA adapters with which the state was computed. */
  readonly scales: readonly number[];
  readonly bytes: number;
  /** The state itself, `bytes` long in all. */
  readonly chunks: AsyncIterable<Uint8Array<ArrayBuffer>>;
}

/** Saves and restores the slots of one engine, one at a time. Answers of the engine are not trusted. */
export class EngineSlots {
  readonly #engine: Pick<Engine, "slots" | "info" | "spec">;
  readonly #mutex = new Mutex();

  constructor(engine: Pick<Engine, "slots" | "info" | "spec">) {
    this.#engine = engine;
  }

  async list(signal: AbortSignal): Promise<readonly EngineSlot[]> {
    const { slots } = await this.#request({ action: "list" }, "list", signal);
    return slots.map(({ tokens, isBusy, lastUsed }, id) => ({ id, tokens, isBusy, lastUsed }));
  }

  /**
   * Reads a slot's state and passes it to `write`.
   * @param maxBytes largest state; the engine has a copy of it in memory meanwhile
   * @throws ServiceError model_busy while the slot answers a request, unsupported_feature when it cannot be saved,
   *   invalid_parameter for an unknown slot, slot_state_not_found for an empty one, insufficient_disk when the state is
   *   larger than `maxBytes`
   */
  async save<Result>(
    slot: number,
    write: (state: SlotState) => Promise<Result>,
    { maxBytes, signal }: { readonly maxBytes: number; readonly signal: AbortSignal },
  ): Promise<Result> {
    this.#checkSlot(slot);
    using resources = new DisposableStack();
    resources.use(await this.#mutex.lock(signal));
    try {
      const { bytes, tokens, scales } = await this.#request(
        { action: "save", slot, most: maxBytes },
        "save",
        signal,
      );
      if (bytes > maxBytes) throw invalidAnswer();
      this.#checkTokens(tokens);
      if (tokens.length === 0)
        throw new ServiceError("slot_state_not_found", `Slot ${slot} has no conversation to save.`);
      if (scales.length !== this.#engine.spec.adapters.length) throw invalidAnswer();
      return await write({ bytes, tokens, scales, chunks: this.#read(bytes, signal) });
    } finally {
      await this.#drop();
    }
  }

  /**
   * Replaces the state of a slot. When reading a chunk throws, the slot stays as it is.
   * @throws ServiceError slot_state_mismatch when the state is of another model, or does not fit
   */
  async restore(
    slot: number,
    { tokens, scales, bytes, chunks }: SlotState,
    signal: AbortSignal,
  ): Promise<void> {
    this.#checkSlot(slot);
    using resources = new DisposableStack();
    resources.use(await this.#mutex.lock(signal));
    try {
      await this.#request({ action: "begin", bytes }, "done", signal);
      let offset = 0;
      for await (const data of chunks) {
        await this.#request({ action: "write", offset, data }, "done", signal);
        offset += data.length;
      }
      await this.#request({ action: "restore", slot, tokens, scales: [...scales] }, "done", signal);
    } finally {
      await this.#drop();
    }
  }

  /** Clears an idle slot; returns how many tokens it had. */
  async erase(slot: number, signal: AbortSignal): Promise<number> {
    this.#checkSlot(slot);
    return (await this.#request({ action: "erase", slot }, "erase", signal)).tokens;
  }

  /** Reserves a slot for requests that name it; returns true while another request still uses it. */
  async reserve(slot: number, signal: AbortSignal): Promise<boolean> {
    this.#checkSlot(slot);
    return (await this.#request({ action: "reserve", slot }, "reserve", signal)).isBusy;
  }

  /** Undoes {@link reserve}. */
  async release(slot: number, signal: AbortSignal): Promise<void> {
    await this.#request({ action: "release", slot }, "done", signal);
  }

  async *#read(bytes: number, signal: AbortSignal): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
    for (let offset = 0; offset < bytes; offset += STATE_CHUNK_BYTES) {
      const { data } = await this.#request({ action: "read", offset }, "read", signal);
      if (data.length !== Math.min(STATE_CHUNK_BYTES, bytes - offset)) throw invalidAnswer();
      yield data;
    }
  }

  /**
   * Makes the engine free its copy of the state, even if the client has disconnected meanwhile. Fails only when the
   * engine has ended.
   */
  async #drop(): Promise<void> {
    await this.#request({ action: "drop" }, "done", new AbortController().signal).catch(() => undefined);
  }

  /** Clients may send any number, and an engine ends at an invalid message. */
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
      throw invalidAnswer();
  }

  async #request<Action extends SlotResult["action"]>(
    request: SlotRequest,
    expected: Action,
    signal: AbortSignal,
  ): Promise<Extract<SlotResult, { action: Action }>> {
    const result = await this.#engine.slots(request, signal);
    if (!hasAction(result, expected)) throw invalidAnswer();
    return result;
  }
}

function hasAction<Action extends SlotResult["action"]>(
  result: SlotResult,
  action: Action,
): result is Extract<SlotResult, { action: Action }> {
  return result.action === action;
}

function invalidAnswer(): ServiceError {
  return new ServiceError("inference_failed", "The engine's answer about its slots makes no sense.");
}
