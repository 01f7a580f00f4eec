/** How often the room looks at the daemon: a person sees what happens while it does. */
export const SAMPLE_MS = 2000;
/** What the charts show. */
export const KEPT_SECS = 15 * 60;
/** A longer pause between two samples is a gap in the charts: the page was hidden, or the daemon away. */
const GAP_SECS = 8;
/** The first tokens of so long count for the median at a moment. */
const FIRST_TOKEN_WINDOW_SECS = 5 * 60;

/** What was known of the daemon at one moment; null where it is not known. */
export interface Sample {
  /** Unix seconds. */
  readonly time: number;
  readonly running: number | null;
  readonly waiting: number | null;
  /** Tokens per second since the sample before. */
  readonly generated: number | null;
  readonly prompted: number | null;
  readonly daemonBytes: number | null;
  /** Resident bytes of each engine, and those reserved on the GPU, by model. */
  readonly engineBytes: ReadonlyMap<string, number>;
  readonly gpuBytes: ReadonlyMap<string, number>;
}

interface Counters {
  readonly time: number;
  readonly generated: number;
  readonly prompted: number;
}

/** The samples of the last minutes, and what is needed to take the next one. */
export class SampleHistory {
  #samples: readonly Sample[] = [];
  #last: Counters | undefined;

  get samples(): readonly Sample[] {
    return this.#samples;
  }

  /** @param time Unix seconds */
  add(time: number, metrics: Metrics): void {
    const counters = {
      time,
      generated: metrics.value("service_tokens_generated_total"),
      prompted: metrics.value("service_prompt_tokens_total"),
    };
    const last = this.#last;
    const isGap = last !== undefined && time - last.time > GAP_SECS;
    const before = isGap ? undefined : last;
    const waiting = metrics.value("service_requests_waiting");
    const sample: Sample = {
      time,
      running: Math.max(0, metrics.value("service_requests_active") - waiting),
      waiting,
      generated: before ? rate(before, counters, "generated") : null,
      prompted: before ? rate(before, counters, "prompted") : null,
      daemonBytes: metrics.value("service_daemon_memory_bytes"),
      engineBytes: metrics.by("service_model_memory_bytes", "model"),
      gpuBytes: metrics.by("service_model_gpu_memory_bytes", "model"),
    };
    this.#last = counters;
    const gap = isGap ? [emptySample(last.time + GAP_SECS / 2)] : [];
    const kept = this.#samples.filter((each) => each.time > time - KEPT_SECS);
    this.#samples = [...kept, ...gap, sample];
  }
}

/** A daemon that has started again counts from zero. */
function rate(before: Counters, now: Counters, counter: "generated" | "prompted"): number | null {
  const seconds = now.time - before.time;
  const grown = now[counter] - before[counter];
  return seconds > 0 && grown >= 0 ? grown / seconds : null;
}

function emptySample(time: number): Sample {
  const none = new Map<string, number>();
  return {
    time,
    running: null,
    waiting: null,
    generated: null,
    prompted: null,
    daemonBytes: null,
    engineBytes: none,
    gpuBytes: none,
  };
}

/** When the first token of an answer came, Unix seconds, and how long it had taken. */
export interface FirstToken {
  readonly at: number;
  readonly seconds: number;
}

/**
 * The time that a part of the answers of the last minutes needed at most for their first token, in seconds; null if there
 * were none.
 * @param part 0.5 for the median
 */
export function firstTokenTime(all: readonly FirstToken[], part: number, now: number): number | null {
  const recent = all.filter(({ at }) => at <= now && at > now - FIRST_TOKEN_WINDOW_SECS);
  const sorted = recent.map(({ seconds }) => seconds).toSorted((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? null;
}

/** One value of a metric, with its labels. */
interface Value {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** The values of a Prometheus text exposition. */
export class Metrics {
  readonly #values = new Map<string, Value[]>();

  constructor(exposition: string) {
    for (const line of exposition.split("\n")) {
      const [, name, labels = "", value] = LINE.exec(line) ?? [];
      if (name === undefined) continue;
      const list = this.#values.get(name) ?? [];
      this.#values.set(name, list);
      list.push({ labels: readLabels(labels), value: Number(value) });
    }
  }

  /** Of a metric without labels; 0 when there is none. */
  value(name: string): number {
    return this.#values.get(name)?.[0]?.value ?? 0;
  }

  /** By the value of a label. */
  by(name: string, label: string): Map<string, number> {
    const list = this.#values.get(name) ?? [];
    return new Map(list.map(({ labels, value }) => [labels[label] ?? "", value]));
  }
}

function readLabels(text: string): Record<string, string> {
  const labels = [...text.matchAll(LABEL)];
  return Object.fromEntries(labels.map(([, name = "", value = ""]) => [name, unescaped(value)]));
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/g, (_, character: string) => (character === "n" ? "\n" : character));
}
