import type { FollowWork, WorkFigures, WorkFollower } from "../inference/request-accounting.ts";

/** Weight of the newest answer in the running mean of about the last five. */
const NEWEST_WEIGHT = 0.3;
/** Shorter prompts say more of what a step costs than of how fast prompts are read. */
const LEAST_PROMPT_TOKENS = 32;

/** Tokens per second of a model on this machine; 0 until measured. */
interface Speed {
  readonly decode: number;
  readonly prefill: number;
}

/** Measures how fast this machine answers, from the figures that the metrics have too. */
export class SpeedMeter {
  readonly #speeds = new Map<string, Speed>();

  /** Called when a piece of work has ended, and its slot is free. */
  onEnd: () => void = () => undefined;

  get speeds(): ReadonlyMap<string, Speed> {
    return this.#speeds;
  }

  /** Follows all work besides the one who follows it already. */
  follow(inner: FollowWork): FollowWork {
    return () => this.#besides(inner());
  }

  #besides(inner: WorkFollower): WorkFollower {
    const all: { -readonly [Key in keyof WorkFigures]: WorkFigures[Key] } = {};
    return {
      request: inner.request,
      note: (figures) => {
        Object.assign(all, figures);
        inner.note(figures);
      },
      end: () => {
        this.#measure(all);
        inner.end();
        this.onEnd();
      },
      further: () => this.#besides(inner.further()),
    };
  }

  #measure({
    model,
    tokensPerSecond = 0,
    completionTokens = 0,
    promptTokens = 0,
    cachedTokens = 0,
    ...at
  }: WorkFigures): void {
    if (model === undefined || completionTokens < 2) return;
    const computed = promptTokens - cachedTokens;
    const seconds = ((at.firstTokenMs ?? 0) - (at.admittedMs ?? 0)) / 1000;
    const prefill = computed >= LEAST_PROMPT_TOKENS && seconds > 0 ? computed / seconds : 0;
    const before = this.#speeds.get(model) ?? { decode: 0, prefill: 0 };
    this.#speeds.set(model, {
      decode: mean(before.decode, tokensPerSecond),
      prefill: mean(before.prefill, prefill),
    });
  }
}

function mean(before: number, now: number): number {
  if (before === 0 || now === 0) return before || now;
  return before + NEWEST_WEIGHT * (now - before);
}

/** A timer that comes this much later than it should says that this process was held up itself. */
const LATE_MS = 500;

/** Notices pauses of this process: what it has not heard meanwhile may just not have been read. */
export class OwnPauses {
  readonly #everyMs: number;
  #last: number;

  /** @param everyMs between two calls of {@link isAfterPause} */
  constructor(everyMs: number, now: number) {
    this.#everyMs = everyMs;
    this.#last = now;
  }

  /** Whether this process has been held up since the last call, so that nobody's silence counts. */
  isAfterPause(now: number): boolean {
    const late = now - this.#last - this.#everyMs;
    this.#last = now;
    return late > LATE_MS;
  }
}
