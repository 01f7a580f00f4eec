import type { EngineCore } from "../core/engine-core.ts";
import { EngineFatalError } from "../core/wllama-session.ts";
import { type DaemonMessage, toReportedError } from "../protocol/messages.ts";
import type { IdleWarmUp } from "./idle-warm-up.ts";
import type { Outbox } from "./outbox.ts";

type CallMessage = Extract<
  DaemonMessage,
  { type: "generate" | "embed" | "rerank" | "tokenize" | "pieces" | "slots" }
>;

/** Runs the daemon's calls on the engine and answers each of them exactly once. */
export class CallRunner {
  readonly #engine: EngineCore;
  readonly #outbox: Outbox;
  readonly #onFatal: (reason: string) => void;
  readonly #idle: IdleWarmUp | undefined;
  readonly #calls = new Map<number, AbortController>();

  /** @param idle what is done while there are no calls */
  constructor(engine: EngineCore, outbox: Outbox, onFatal: (reason: string) => void, idle?: IdleWarmUp) {
    this.#engine = engine;
    this.#outbox = outbox;
    this.#onFatal = onFatal;
    this.#idle = idle;
  }

  async run(message: CallMessage): Promise<void> {
    const { call } = message;
    const controller = new AbortController();
    this.#calls.set(call, controller);
    try {
      await this.#idle?.enter();
      await this.#answer(message, controller.signal);
    } catch (error) {
      if (error instanceof EngineFatalError) {
        if (error.blame)
          this.#outbox.push({ type: "call-failed", call, error: toReportedError(error.blame) });
        this.#onFatal(error.message.split("\n", 1)[0] ?? "unknown");
      } else if (controller.signal.aborted) this.#outbox.push({ type: "cancelled", call });
      else this.#outbox.push({ type: "call-failed", call, error: toReportedError(error) });
    } finally {
      this.#idle?.leave();
      this.#calls.delete(call);
    }
  }

  /** Ignores a call that has already ended: its answer is on its way. */
  cancel(call: number): void {
    this.#calls.get(call)?.abort();
  }

  async #answer(message: CallMessage, signal: AbortSignal): Promise<void> {
    const { call } = message;
    switch (message.type) {
      case "generate":
        return await this.#engine.generate(
          message.request,
          (event) => this.#outbox.pushEvent(call, event),
          signal,
        );
      case "embed": {
        const result = await this.#engine.embed(message.text, signal);
        return this.#outbox.push({ type: "embedded", call, result });
      }
      case "rerank": {
        const result = await this.#engine.rerank(message.query, message.document, signal);
        return this.#outbox.push({ type: "reranked", call, result });
      }
      case "tokenize": {
        const tokens = await this.#engine.tokenize(message.text, message.options, signal);
        return this.#outbox.push({ type: "tokenized", call, tokens });
      }
      case "pieces": {
        const pieces = await this.#engine.pieces(message.tokens, signal);
        return this.#outbox.push({ type: "pieces", call, pieces });
      }
      case "slots": {
        const result = await this.#engine.slots(message.request, signal);
        return this.#outbox.push({ type: "slots", call, result });
      }
    }
  }
}
