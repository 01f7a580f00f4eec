import type { ObserveWork, WorkStats, WorkObserver } from "../inference/request-accounting.ts";

/** Weight of the newest answer in the running mean: the mean covers about the last five. */
const NEWEST_WEIGHT = 0.3;
/** Shorter prompts measure the overhead of a step rather than the speed of prefill. */
const MIN_PROMPT_TOKENS = 32;

/** Tokens per second of a model on this machine; 0 until measured. */
interface Speed {
  readonly decode: number;
  readonly prefill: number;
}

/** Measures the speed of this machine from the same reports as the metrics. */
export class SpeedMeter {
  readonly #speeds = new Map<string, Speed>();

  /** Called when a request has ended and its slot is free. */
  onEnd: () => void = () => undefined;

  get speeds(): ReadonlyMap<string, Speed> {
    return this.#speeds;
  }

  /** Observes all work in addition to another observer. */
  follow(inner: ObserveWork): ObserveWork {
    return () => this.#alongside(inner());
  }

  #alongside(inner: WorkObserver): WorkObserver {
    const all: { -readonly [Key in keyof WorkStats]: WorkStats[Key] } = {};
    return {
      request: inner.request,
      report: (figures) => {
        Object.assign(all, figures);
        inner.report(figures);
      },
      end: () => {
        this.#measure(all);
        inner.end();
        this.onEnd();
      },
      fork: () => this.#alongside(inner.fork()),
    };
  }

  #measure({
    model,
    tokensPerSecond = 0,
    completionTokens = 0,
    promptTokens = 0,
    cachedTokens = 0,
    ...at
  }: WorkStats): void {
    if (model === undefined || completionTokens < 2) return;
    const computed = promptTokens - cachedTokens;
    const seconds = ((at.firstTokenMs ?? 0) - (at.admittedMs ?? 0)) / 1000;
    const prefill = computed >= MIN_PROMPT_TOKENS && seconds > 0 ? computed / seconds : 0;
    const before = this.#speeds.get(model) ?? { decode: 0, prefill: 0 };
    this.#speeds.set(model, {
      decode: runningMean(before.decode, tokensPerSecond),
      prefill: runningMean(before.prefill, prefill),
    });
  }
}

function runningMean(before: number, now: number): number {
  if (before === 0 || now === 0) return before || now;
  return before + NEWEST_WEIGHT * (now - before);
}

/** A timer that is later than this shows that the process was stalled. */
const STALL_MS = 500;

/**
 * Calls back at an interval. `wasStalled` is true if this process was stalled since the last call: received messages may
 * not have been read yet, so the silence of others means nothing.
 */
export function startTicks(intervalMs: number, onTick: (wasStalled: boolean) => void): NodeJS.Timeout {
  let last = performance.now();
  const tick = (): void => {
    const now = performance.now();
    const late = now - last - intervalMs;
    last = now;
    onTick(late > STALL_MS);
  };
  return setInterval(tick, intervalMs).unref();
}
