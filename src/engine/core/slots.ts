import { z } from "zod";
import type { ErrorCode } from "../../errors/error-codes.ts";
import { ServiceError } from "../../errors/service-error.ts";
import {
  savedStateSchema,
  slotListSchema,
  type SlotRequest,
  type SlotResult,
  STATE_CHUNK_BYTES,
  type TokenIds,
} from "../protocol/calls.ts";
import type { RequestLoop } from "./request-loop.ts";
import { NO_MEMORY, SLOTS_VERB, TOO_LARGE } from "./worker-verbs.ts";
import { EngineCallError, StockEngineError } from "./wllama-session.ts";

/** Results of the worker. A negative number is an error. */
const savedSchema = z.union([z.int(), savedStateSchema]);
const chunkSchema = z.instanceof(Uint8Array);
const numberSchema = z.int();

/** Errors by their numbers in wasm/kernels/slot-state.h. An invalid slot number (-1) cannot occur. */
const ERRORS: Readonly<Record<number, readonly [ErrorCode, string]>> = {
  [-2]: ["model_busy", "The slot is answering a request; try again when that has ended."],
  [-3]: [
    "unsupported_feature",
    "The slot's conversation has images or recordings, which a saved state cannot identify; save a conversation of text only.",
  ],
  [-4]: [
    "unsupported_feature",
    "The state of this model cannot be saved, because the model is recurrent or hybrid, or has no state at all.",
  ],
  [-5]: ["slot_state_mismatch", "The saved state is damaged, or of another kind; delete it and save again."],
  [-6]: [
    "slot_state_mismatch",
    "The saved state does not fit the model: the context is too small for it, or it was saved with another model.",
  ],
  [TOO_LARGE]: [
    "insufficient_disk",
    "The slot's state exceeds the space for saved prompts; raise models.saved_prompts.",
  ],
  [NO_MEMORY]: ["insufficient_memory", "The engine has no memory left to hold the state."],
};

/** Lists, saves, restores and erases the slots of llama.cpp's server. */
export class Slots {
  readonly #loop: RequestLoop;
  readonly #count: number;
  readonly #vocabSize: number;

  constructor(
    loop: RequestLoop,
    { count, vocabSize }: { readonly count: number; readonly vocabSize: number },
  ) {
    this.#loop = loop;
    this.#count = count;
    this.#vocabSize = vocabSize;
  }

  /**
   * Handles one request.
   * @throws ServiceError unsupported_feature for a model or conversation that cannot be saved, and on the stock WASM;
   *   model_busy for a slot in use; slot_state_mismatch for a state of another model
   */
  async handle(request: SlotRequest, signal: AbortSignal): Promise<SlotResult> {
    const call = (...args: readonly unknown[]): Promise<unknown> => this.#call(signal, request.action, args);
    switch (request.action) {
      case "list":
        return { action: "list", slots: slotListSchema.parse(await call(this.#count)) };
      case "save": {
        const saved = savedSchema.parse(await call(request.slot, request.most));
        if (typeof saved === "number") throw slotError(saved);
        return { action: "save", ...saved };
      }
      case "read":
        return { action: "read", data: chunkSchema.parse(await call(request.offset, STATE_CHUNK_BYTES)) };
      case "begin":
        return doneResult(await call(request.bytes));
      case "write":
        return doneResult(await call(request.offset, request.data));
      case "restore":
        this.#checkTokens(request.tokens);
        return doneResult(await call(request.slot, request.tokens, request.scales));
      case "erase": {
        const tokens = numberSchema.parse(await call(request.slot));
        if (tokens < 0) throw slotError(tokens);
        return { action: "erase", tokens };
      }
      case "reserve": {
        const isBusy = numberSchema.parse(await call(request.slot));
        if (isBusy < 0) throw slotError(isBusy);
        return { action: "reserve", isBusy: isBusy > 0 };
      }
      case "release":
        return doneResult(await call(request.slot));
      default: // drop
        return doneResult(await call());
    }
  }

  /** Checks the tokens, because llama.cpp aborts on a token that is not in its vocabulary. */
  #checkTokens(tokens: TokenIds): void {
    if (tokens.some((token) => token < 0 || token >= this.#vocabSize)) throw slotError(-5);
  }

  async #call(signal: AbortSignal, action: string, args: readonly unknown[]): Promise<unknown> {
    try {
      return await this.#loop.call(SLOTS_VERB, [action, ...args], signal);
    } catch (error) {
      if (error instanceof StockEngineError) throw unsupported(error);
      if (error instanceof EngineCallError) throw slotError(-5, error);
      throw error;
    }
  }
}

function doneResult(result: unknown): SlotResult {
  const number = numberSchema.parse(result);
  if (number < 0) throw slotError(number);
  return { action: "done" };
}

function slotError(number: number, cause?: Error): ServiceError {
  const [code, message] = ERRORS[number] ?? ["inference_failed", `The engine refused with ${number}.`];
  return new ServiceError(code, message, { cause });
}

function unsupported(cause: Error): ServiceError {
  return new ServiceError(
    "unsupported_feature",
    "Saving prompts and choosing slots need Daybreak's own engine, but this model runs on the stock one; set engine.kernels to auto.",
    { cause },
  );
}
