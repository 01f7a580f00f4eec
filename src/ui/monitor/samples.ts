/** Poll interval of the monitor. */
export const SAMPLE_INTERVAL_MS = 2000;
/** Time span of the charts. */
export const HISTORY_SECS = 15 * 60;
/** A longer interval between two samples is a gap in the charts: the page was hidden, or the daemon unreachable. */
const MAX_INTERVAL_SECS = 8;
/** Time span of the answers whose time to first token counts for a percentile. */
const FIRST_TOKEN_WINDOW_SECS = 5 * 60;

/** Metrics of the daemon at one time; null where unknown. */
export interface Sample {
  /** Unix seconds. */
  readonly time: number;
  readonly running: number | null;
  readonly waiting: number | null;
  /** Tokens per second since the previous sample. */
  readonly generated: number | null;
  readonly prompted: number | null;
  readonly daemonBytes: number | null;
  /** Resident memory of each engine, by model. */
  readonly engineBytes: ReadonlyMap<string, number>;
  /** GPU memory reserved by each engine, by model. */
  readonly gpuBytes: ReadonlyMap<string, number>;
}

interface Counters {
  readonly time: number;
  readonly generated: number;
  readonly prompted: number;
}

/** Samples of the last minutes. */
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
    const isGap = last !== undefined && time - last.time > MAX_INTERVAL_SECS;
    const before = isGap ? undefined : last;
    const waiting = metrics.value("service_requests_waiting");
    const sample: Sample = {
      time,
      running: Math.max(0, metrics.value("service_requests_active") - waiting),
      waiting,
      generated: before ? rate(before, counters, "generated") : null,
      prompted: before ? rate(before, counters, "prompted") : null,
      daemonBytes: metrics.value("service_daemon_memory_bytes"),
      engineBytes: metrics.byLabel("service_model_memory_bytes", "model"),
      gpuBytes: metrics.byLabel("service_model_gpu_memory_bytes", "model"),
    };
    this.#last = counters;
    const gap = isGap ? [emptySample(last.time + MAX_INTERVAL_SECS / 2)] : [];
    const recent = this.#samples.filter((each) => each.time > time - HISTORY_SECS);
    this.#samples = [...recent, ...gap, sample];
  }
}

/** Returns the increase of a counter per second; null after a restart of the daemon, which resets counters. */
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

/** Unix time of an answer's first token, and the seconds since its request. */
export interface FirstToken {
  readonly at: number;
  readonly seconds: number;
}

/**
 * Returns a percentile of the time to first token of recent answers, in seconds; null if there were none.
 * @param part 0.5 for the median
 */
export function firstTokenTime(all: readonly FirstToken[], part: number, now: number): number | null {
  const recent = all.filter(({ at }) => at <= now && at > now - FIRST_TOKEN_WINDOW_SECS);
  const sorted = recent.map(({ seconds }) => seconds).toSorted((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? null;
}

interface MetricValue {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const METRIC_LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const METRIC_LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** Values parsed from the Prometheus text format. */
export class Metrics {
  readonly #values = new Map<string, MetricValue[]>();

  constructor(exposition: string) {
    for (const line of exposition.split("\n")) {
      const [, name, labels = "", value] = METRIC_LINE.exec(line) ?? [];
      if (name === undefined) continue;
      const list = this.#values.get(name) ?? [];
      this.#values.set(name, list);
      list.push({ labels: readLabels(labels), value: Number(value) });
    }
  }

  /** Returns the value of a metric without labels, or 0. */
  value(name: string): number {
    return this.#values.get(name)?.[0]?.value ?? 0;
  }

  /** Returns the values of a metric by the value of a label. */
  byLabel(name: string, label: string): Map<string, number> {
    const list = this.#values.get(name) ?? [];
    return new Map(list.map(({ labels, value }) => [labels[label] ?? "", value]));
  }
}

function readLabels(text: string): Record<string, string> {
  const labels = [...text.matchAll(METRIC_LABEL)];
  return Object.fromEntries(labels.map(([, name = "", value = ""]) => [name, unescaped(value)]));
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/g, (_, character: string) => (character === "n" ? "\n" : character));
}
