import { ServiceError } from "../errors/service-error.ts";
import {
  checkDetokenised,
  checkRequestLimits,
  checkTextLength,
  checkTokenised,
} from "./core/request-limits.ts";
import { type CallMessage, EngineCalls } from "./engine-calls.ts";
import type { EngineProcess } from "./engine-process.ts";
import type { Engine, EngineExit } from "./engine.ts";
import type { EventQueue } from "./event-queue.ts";
import type { EmbeddingResult, EngineInfo, EngineSpec, RerankResult } from "./protocol/engine-spec.ts";
import type { GenerationEvent, GenerationRequest } from "./protocol/generation.ts";
import type { TokenIds, TokeniseOptions, TokenPieces } from "./protocol/tokens.ts";
import type { DaemonMessage, ReportedError } from "./protocol/messages.ts";
import { readTooSlowly, waitingEvents } from "./waiting-events.ts";

/** An engine process with its model loaded, as the daemon sees it. */
export class EngineHandle implements Engine {
  readonly spec: EngineSpec;
  readonly info: EngineInfo;
  readonly #process: EngineProcess;
  readonly #calls: EngineCalls;

  constructor(process: EngineProcess, spec: EngineSpec, info: EngineInfo, stallTimeoutMs: number) {
    this.spec = spec;
    this.info = info;
    this.#process = process;
    this.#calls = new EngineCalls({
      slots: spec.slots,
      stallTimeoutMs,
      post: (message) => process.post(message),
      onStall: () =>
        process.end(`did not answer for ${Math.round(stallTimeoutMs / 1000)} s`, {
          code: "deadline_exceeded",
        }),
      onDeafness: (allowedMs) =>
        process.end(
          `did not let go of a cancelled request within ${seconds(allowedMs)} s; the next request starts it again`,
        ),
    });
    process.onEnd = (error) => this.#calls.end(error);
    process.onMessage = (message) => {
      if (!("call" in message) || !this.#calls.receive(message)) {
        process.end(`sent a message that was not expected: ${message.type}`);
      }
    };
  }

  get pid(): number {
    return this.#process.pid;
  }

  get alive(): boolean {
    return this.#process.alive;
  }

  get exited(): Promise<EngineExit> {
    return this.#process.exited;
  }

  async *generate(
    request: GenerationRequest,
    signal: AbortSignal,
  ): AsyncGenerator<GenerationEvent, void, undefined> {
    signal.throwIfAborted();
    checkRequestLimits(request, this.info.contextSize);
    const events = waitingEvents();
    const id = await this.#calls.start(
      {
        accept: (message) => acceptEvents(message, events, () => void this.#calls.cancel(message.call)),
        fail: (error) => events.end(error),
      },
      true,
      signal,
      (call) => ({ type: "generate", call, request }),
    );
    try {
      for (let event = await events.next(signal); event; event = await events.next(signal)) yield event;
      if (!events.ended || signal.aborted) signal.throwIfAborted();
    } finally {
      await this.#calls.cancel(id);
    }
  }

  async embed(text: string, signal: AbortSignal): Promise<EmbeddingResult> {
    signal.throwIfAborted();
    checkTextLength(text.length, this.info.contextSize);
    return this.#ask(
      (message) => (message.type === "embedded" ? message.result : undefined),
      signal,
      (call) => ({ type: "embed", call, text }),
    );
  }

  async rerank(query: string, document: string, signal: AbortSignal): Promise<RerankResult> {
    signal.throwIfAborted();
    checkTextLength(query.length + document.length, this.info.contextSize);
    return this.#ask(
      (message) => (message.type === "reranked" ? message.result : undefined),
      signal,
      (call) => ({ type: "rerank", call, query, document }),
    );
  }

  async tokenize(text: string, options: TokeniseOptions, signal: AbortSignal): Promise<TokenIds> {
    signal.throwIfAborted();
    checkTokenised(text.length);
    return this.#ask(
      (message) => (message.type === "tokenized" ? message.tokens : undefined),
      signal,
      (call) => ({ type: "tokenize", call, text, options }),
      false,
    );
  }

  async pieces(tokens: TokenIds, signal: AbortSignal): Promise<TokenPieces> {
    signal.throwIfAborted();
    checkDetokenised(tokens, this.info.vocabSize);
    return this.#ask(
      (message) => (message.type === "pieces" ? message.pieces : undefined),
      signal,
      (call) => ({ type: "pieces", call, tokens }),
      false,
    );
  }

  async memoryUsage(): Promise<number> {
    if (!this.alive) return 0;
    const never = new AbortController().signal;
    return this.#ask(bytesOf, never, (call) => ({ type: "memory", call }), false).catch(() => 0);
  }

  async close(): Promise<void> {
    this.#process.end("closed, because the model was unloaded", {
      expected: true,
      code: "model_not_loaded",
    });
    await this.exited;
  }

  /** A call with one answer. */
  async #ask<Result>(
    read: (message: CallMessage) => Result | undefined,
    signal: AbortSignal,
    message: (call: number) => DaemonMessage,
    takesSlot = true,
  ): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    const id = await this.#calls.start(
      {
        accept: (answer) => {
          const result = read(answer);
          if (result !== undefined) resolve(result);
          else if (answer.type === "call-failed") reject(toServiceError(answer.error));
          else if (answer.type === "cancelled") reject(signal.reason);
          else return "unexpected";
          return "done";
        },
        fail: reject,
      },
      takesSlot,
      signal,
      message,
    );
    // The slot is free when this rejects; an engine that says nothing must not hold the caller.
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

function seconds(milliseconds: number): string {
  return (milliseconds / 1000).toFixed(1);
}

function bytesOf(message: CallMessage): number | undefined {
  return message.type === "memory" ? message.bytes : undefined;
}

function acceptEvents(
  message: CallMessage,
  events: EventQueue<GenerationEvent>,
  cancel: () => void,
): "more" | "done" | "unexpected" {
  switch (message.type) {
    case "events":
      for (const event of message.events) {
        if (events.push(event)) continue;
        events.abandon(readTooSlowly());
        cancel();
      }
      if (message.events.at(-1)?.type !== "done") return "more";
      events.end();
      return "done";
    case "call-failed":
      events.end(toServiceError(message.error));
      return "done";
    case "cancelled":
      events.end();
      return "done";
    default:
      return "unexpected";
  }
}

export function toServiceError({ code, message, param }: ReportedError): ServiceError {
  return new ServiceError(code, message, param === undefined ? {} : { param });
}
