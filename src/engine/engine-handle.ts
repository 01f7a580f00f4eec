import { ServiceError } from "../errors/service-error.ts";
import { CallDispatcher, type CallMessage, type CallReceiver } from "./call-dispatcher.ts";
import { explainExit } from "./core/failure-text.ts";
import type { Engine, EngineExit } from "./engine.ts";
import type {
  EmbeddingResult,
  RerankResult,
  SlotRequest,
  SlotResult,
  TokenIds,
  TokenizeOptions,
  TokenPieces,
} from "./protocol/calls.ts";
import type { EngineInfo, EngineSpec } from "./protocol/engine-spec.ts";
import type { GenerationEvent, GenerationRequest } from "./protocol/generation.ts";
import {
  validateMessage,
  type DaemonMessage,
  type EngineMessage,
  toServiceError,
} from "./protocol/messages.ts";
import { checkDetokenized, checkRequestLimits, checkTextLength, checkTokenized } from "./request-limits.ts";

/** Client of an engine whose model is loaded. */
export class EngineHandle implements Engine, EngineReceiver {
  readonly spec: EngineSpec;
  readonly info: EngineInfo;
  readonly #connection: EngineConnection;
  readonly #calls: CallDispatcher;

  constructor(connection: EngineConnection, spec: EngineSpec, info: EngineInfo, stallTimeoutMs: number) {
    this.spec = spec;
    this.info = info;
    this.#connection = connection;
    this.#calls = new CallDispatcher({
      slots: spec.slots,
      stallTimeoutMs,
      post: (message) => connection.post(validateMessage(message)),
      onStall: () =>
        connection.end(`did not answer for ${Math.round(stallTimeoutMs / 1000)} s`, {
          code: "deadline_exceeded",
        }),
      onUnresponsive: (allowedMs) =>
        connection.end(
          `did not stop a cancelled request within ${(allowedMs / 1000).toFixed(1)} s; the next request restarts it`,
        ),
    });
  }

  receive(message: EngineMessage): boolean {
    return "call" in message && this.#calls.receive(message);
  }

  /** Fails all calls, because the engine has ended. */
  end(error: ServiceError): void {
    this.#calls.end(error);
  }

  get pid(): number {
    return this.#connection.pid;
  }

  get alive(): boolean {
    return this.#connection.alive;
  }

  get exited(): Promise<EngineExit> {
    return this.#connection.exited;
  }

  async generate(
    request: GenerationRequest,
    onEvent: (event: GenerationEvent) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { slots, cacheReuse } = this.spec;
    checkRequestLimits(request, { contextSize: this.info.contextSize, slots, cacheReuse });
    const read = (message: CallMessage): Reading<void> => {
      if (message.type !== "events") return "unexpected";
      // An answer may end before its cancellation arrives: its events are dropped, but the call is done.
      if (!signal.aborted) for (const event of message.events) onEvent(event);
      return message.events.at(-1)?.type === "done" ? { result: undefined } : "more";
    };
    const need = { takesSlot: true, slot: request.slot };
    await this.#call(read, signal, (call) => ({ type: "generate", call, request }), need);
  }

  async embed(text: string, signal: AbortSignal): Promise<EmbeddingResult> {
    checkTextLength(text.length, this.info.contextSize);
    return await this.#ask("embedded", signal, (call) => ({ type: "embed", call, text }));
  }

  async rerank(query: string, document: string, signal: AbortSignal): Promise<RerankResult> {
    checkTextLength(query.length + document.length, this.info.contextSize);
    return await this.#ask("reranked", signal, (call) => ({ type: "rerank", call, query, document }));
  }

  async tokenize(text: string, options: TokenizeOptions, signal: AbortSignal): Promise<TokenIds> {
    checkTokenized(text.length);
    const message = (call: number): DaemonMessage => ({ type: "tokenize", call, text, options });
    return await this.#ask("tokenized", signal, message, NO_SLOT);
  }

  async pieces(tokens: TokenIds, signal: AbortSignal): Promise<TokenPieces> {
    checkDetokenized(tokens, this.info.vocabSize);
    return await this.#ask("pieces", signal, (call) => ({ type: "pieces", call, tokens }), NO_SLOT);
  }

  async slots(request: SlotRequest, signal: AbortSignal): Promise<SlotResult> {
    if (request.action === "reserve") this.#calls.reserveSlot(request.slot);
    if (request.action === "release") this.#calls.releaseSlot(request.slot);
    return await this.#ask("slots", signal, (call) => ({ type: "slots", call, request }), NO_SLOT);
  }

  async memoryUsage(): Promise<number> {
    if (!this.alive) return 0;
    const never = new AbortController().signal;
    return await this.#ask("memory", never, (call) => ({ type: "memory", call }), NO_SLOT).catch(() => 0);
  }

  async close(): Promise<void> {
    this.#connection.end("closed, because the model was unloaded", {
      expected: true,
      code: "model_not_loaded",
    });
    await this.exited;
  }

  /** Sends a call that has one answer, and returns its result. */
  async #ask<Type extends keyof Results>(
    type: Type,
    signal: AbortSignal,
    message: (call: number) => DaemonMessage,
    need = { takesSlot: true },
  ): Promise<Results[Type]> {
    const read = (answer: CallMessage): Reading<Results[Type]> =>
      isResult(answer, type) ? answer : "unexpected";
    return await this.#call(read, signal, message, need);
  }

  /** Sends a call and reads its answers; the slot is free when this settles. */
  async #call<Result>(
    read: (message: CallMessage) => Reading<Result>,
    signal: AbortSignal,
    message: (call: number) => DaemonMessage,
    need: Parameters<CallDispatcher["start"]>[1],
  ): Promise<Result> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    const receiver: CallReceiver = {
      accept(answer) {
        if (answer.type === "call-failed") reject(toServiceError(answer.error));
        else if (answer.type === "cancelled") reject(signal.reason);
        else {
          const reading = read(answer);
          if (typeof reading === "string") return reading;
          if (signal.aborted) reject(signal.reason);
          else resolve(reading.result);
        }
        return "done";
      },
      // A caller that has cancelled gets its own reason, even if the engine failed.
      fail: (error) => reject(signal.aborted ? signal.reason : error),
    };
    const id = await this.#calls.start(receiver, need, signal, message);
    // Rejects when the slot is free, or after a short wait for an engine that does not respond.
    const onAbort = (): void => void this.#calls.cancel(id).then(() => reject(signal.reason));
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }
}

/** Requirement of calls that run between steps. */
const NO_SLOT = { takesSlot: false };

/** Meaning of a message for its call: the result, a part of it, or something unexpected. */
type Reading<Result> = { readonly result: Result } | "more" | "unexpected";

type ResultMessage = Extract<CallMessage, { result: unknown }>;

type Results = { readonly [Message in ResultMessage as Message["type"]]: Message["result"] };

function isResult<Type extends keyof Results>(
  message: CallMessage,
  type: Type,
): message is CallMessage & { readonly result: Results[Type] } {
  return message.type === type;
}

/** Connection to one running engine: a process, or a worker of a page. */
export interface EngineConnection {
  /** Process id; 0 for an engine without a process. */
  readonly pid: number;
  /** False once it has ended or is ending. */
  readonly alive: boolean;
  /** Settles when it is gone; never rejects. */
  readonly exited: Promise<EngineExit>;
  /** @throws ServiceError internal_error when the message cannot be sent as it is */
  post(message: DaemonMessage): void;
  /** Ends the engine. Only the first reason counts. */
  end(reason: string, options?: EndOptions): void;
}

/** How to report an engine that the daemon ended. */
export interface EndOptions {
  /** Not a failure. */
  readonly expected?: boolean;
  /** engine_crashed when absent. */
  readonly code?: "deadline_exceeded" | "model_not_loaded" | "model_load_failed";
}

export interface EngineReceiver {
  /** Handles a valid message. Returns false if it was not expected, so the engine cannot be trusted. */
  receive(message: EngineMessage): boolean;
  /** Called once, when the engine has ended. */
  end(error: ServiceError): void;
}

/** Error of calls whose engine has ended. */
export function endError(reason: string, code: EndOptions["code"]): ServiceError {
  switch (code) {
    case "deadline_exceeded":
      return new ServiceError(code, `The model stopped answering: it ${reason}.`);
    case "model_not_loaded":
      return new ServiceError(code, "The model was unloaded while the request ran.");
    case "model_load_failed":
      return new ServiceError(code, reason);
    default:
      return new ServiceError(
        "engine_crashed",
        `The model's engine ended while the request ran: ${explainExit(reason)}`,
      );
  }
}
