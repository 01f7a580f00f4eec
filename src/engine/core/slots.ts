import { z } from "zod";
import type { ErrorCode } from "../../errors/error-codes.ts";
import { ServiceError } from "../../errors/service-error.ts";
import {
  adapterScalesSchema,
  type SlotRequest,
  type SlotResult,
  STATE_PIECE_BYTES,
  type TokenIds,
  tokenIdsSchema,
} from "../protocol/calls.ts";
import type { RequestLoop } from "./request-loop.ts";
import { NO_MEMORY, SLOTS_VERB, TOO_LARGE } from "./worker-verbs.ts";
import { EngineCallError, StockEngineError, type WllamaSession } from "./wllama-session.ts";

/** What the worker returns: a number below zero says why it could not do it. */
const listSchema = z.array(z.object({ tokens: z.int().min(0), isBusy: z.boolean(), lastUsed: z.number() }));
const savedSchema = z.union([
  z.int(),
  z.object({ bytes: z.int().min(0), tokens: tokenIdsSchema, scales: adapterScalesSchema }),
]);
const pieceSchema = z.instanceof(Uint8Array);
const numberSchema = z.int();

/** By the numbers in wasm/kernels/slot-state.h; the daemon asks for no slot that is not there. */
const REFUSALS: Readonly<Record<number, readonly [ErrorCode, string]>> = {
  [-2]: ["model_busy", "The slot is answering a request; try again when that has ended."],
  [-3]: [
    "unsupported_feature",
    "The slot's conversation has images or recordings, of which the state does not say which they were, so it cannot be saved; save one of text alone.",
  ],
  [-4]: [
    "unsupported_feature",
    "The model keeps a running state (recurrent or hybrid) or none at all, which cannot be saved; its prompts are read again.",
  ],
  [-5]: ["slot_state_mismatch", "The saved state is damaged, or of another kind; delete it and save again."],
  [-6]: [
    "slot_state_mismatch",
    "The model cannot take the saved state: its context has no room for it, or it is of another kind.",
  ],
  [TOO_LARGE]: [
    "insufficient_disk",
    "The slot's state is larger than all saved prompts may be; raise models.saved_prompts.",
  ],
  [NO_MEMORY]: ["insufficient_memory", "The engine has no memory left to hold the state."],
};

/** The slots of llama.cpp's server: which conversations they have, and what the model has computed of those. */
export class Slots {
  readonly #session: Pick<WllamaSession, "call">;
  readonly #loop: Pick<RequestLoop, "runBetweenPolls">;
  readonly #count: number;
  readonly #vocabSize: number;

  constructor(
    session: Pick<WllamaSession, "call">,
    loop: Pick<RequestLoop, "runBetweenPolls">,
    { count, vocabSize }: { readonly count: number; readonly vocabSize: number },
  ) {
    this.#session = session;
    this.#loop = loop;
    this.#count = count;
    this.#vocabSize = vocabSize;
  }

  /**
   * @throws ServiceError unsupported_feature for a model or a conversation that cannot be saved, and on the stock WASM;
   *   model_busy for a slot in use; slot_state_mismatch for a state that is not this model's
   */
  async handle(request: SlotRequest, signal: AbortSignal): Promise<SlotResult> {
    const ask = (...args: readonly unknown[]): Promise<unknown> => this.#ask(signal, request.action, args);
    switch (request.action) {
      case "list":
        return { action: "list", slots: listSchema.parse(await ask(this.#count)) };
      case "save": {
        const saved = savedSchema.parse(await ask(request.slot, request.most));
        if (typeof saved === "number") throw refused(saved);
        return { action: "save", ...saved };
      }
      case "read":
        return { action: "read", data: pieceSchema.parse(await ask(request.offset, STATE_PIECE_BYTES)) };
      case "begin":
        return done(await ask(request.bytes));
      case "write":
        return done(await ask(request.offset, request.data));
      case "restore":
        this.#checkTokens(request.tokens);
        return done(await ask(request.slot, request.tokens, request.scales));
      case "erase": {
        const tokens = numberSchema.parse(await ask(request.slot));
        if (tokens < 0) throw refused(tokens);
        return { action: "erase", tokens };
      }
      case "reserve": {
        const isBusy = numberSchema.parse(await ask(request.slot));
        if (isBusy < 0) throw refused(isBusy);
        return { action: "reserve", isBusy: isBusy > 0 };
      }
      case "release":
        return done(await ask(request.slot));
      default: // drop
        return done(await ask());
    }
  }

  /** llama.cpp would end the engine for a token that its vocabulary does not have. */
  #checkTokens(tokens: TokenIds): void {
    if (tokens.some((token) => token < 0 || token >= this.#vocabSize)) throw refused(-5);
  }

  async #ask(signal: AbortSignal, action: string, args: readonly unknown[]): Promise<unknown> {
    try {
      return await this.#loop.runBetweenPolls(() => {
        signal.throwIfAborted();
        return this.#session.call(SLOTS_VERB, action, ...args);
      });
    } catch (error) {
      if (error instanceof StockEngineError) throw unsupported(error);
      if (error instanceof EngineCallError) throw refused(-5, error);
      throw error;
    }
  }
}

function done(result: unknown): SlotResult {
  const number = numberSchema.parse(result);
  if (number < 0) throw refused(number);
  return { action: "done" };
}

function refused(number: number, cause?: Error): ServiceError {
  const [code, message] = REFUSALS[number] ?? ["inference_failed", `The engine refused with ${number}.`];
  return new ServiceError(code, message, { cause });
}

function unsupported(cause: Error): ServiceError {
  return new ServiceError(
    "unsupported_feature",
    "Saving prompts and choosing slots need Daybreak's own engine, but this model runs on the stock one; set engine.kernels to auto.",
    { cause },
  );
}
