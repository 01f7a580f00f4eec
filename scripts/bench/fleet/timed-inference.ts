import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "../../../src/errors/service-error.ts";
import type { Inference, InferenceEvent, InferenceStream } from "../../../src/inference/inference.ts";
import { AdmissionQueue } from "../../../src/inference/admission-queue.ts";

export const SLOTS = 4;
export const TOKENS = 10;
export const TOKEN_MS = 400;

/** An engine that only keeps time: two or three tokens a second, in each of four slots. */
export class TimedInference implements Inference {
  readonly activeRequests = 0;
  readonly #queue = new AdmissionQueue({ slots: SLOTS, maxWaiting: 0 });
  /** Answers that it has given. */
  answers = 0;
  /** Called when a slot is free again. */
  onEnd: () => void = () => undefined;

  get loads(): Inference["loads"] {
    const { running, lowPriority: yielding, waiting } = this.#queue;
    return [{ model: "timed", running, lowPriority: yielding, waiting, contextTokens: 1, contextUsage: 0 }];
  }

  async generate(...[request, signal]: Parameters<Inference["generate"]>): Promise<InferenceStream> {
    const permit = await this.#queue.acquire(signal, { mayWait: request.mayWait });
    const events = this.#events(signal, () => {
      permit[Symbol.dispose]();
      this.onEnd();
    });
    return { model: "timed", loadMs: 0, sampling: {}, warnings: [], events };
  }

  async *#events(signal: AbortSignal, onEnd: () => void): AsyncGenerator<InferenceEvent, undefined> {
    try {
      yield { type: "start" };
      for (let token = 0; token < TOKENS; token += 1) {
        await sleep(TOKEN_MS, undefined, { signal });
        yield { type: "text-delta", text: "token " };
      }
    } finally {
      onEnd();
    }
    this.answers += 1;
    yield {
      type: "done",
      reason: "stop",
      usage: { promptTokens: 1, completionTokens: TOKENS, cachedTokens: 0, reasoningTokens: 0 },
      timings: { promptMs: 1, completionMs: TOKENS * TOKEN_MS },
      totalMs: TOKENS * TOKEN_MS,
      tokensPerSecond: 1000 / TOKEN_MS,
    };
    return undefined;
  }

  embed = nothing;
  rerank = nothing;
  score = nothing;
  tokenize = nothing;
  pieces = nothing;
  detokenize = nothing;
  promptFromTokens = nothing;
}

async function nothing(): Promise<never> {
  throw new ServiceError("unsupported_feature", "It only keeps time.");
}
