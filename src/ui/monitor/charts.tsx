import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import uPlot from "uplot";
import {
  formatBytes,
  formatDuration,
  formatInteger,
  formatNumber,
  formatTime,
} from "../../json/quantities.ts";
import { firstTokens, samples, status } from "./monitor-state.ts";
import { firstTokenTime, HISTORY_SECS, type Sample } from "./samples.ts";

/** Maximum number of lines per chart. The smallest engines share one line. */
const MAX_ENGINES = 4;
const OTHER_ENGINES = "Other engines";
/** Grid steps of axes that count requests. */
const COUNT_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/** Charts of the daemon's load over the last minutes. */
export function Charts(): JSX.Element {
  const all = samples.value;
  const line = (label: string, of: (sample: Sample) => number | null): ChartLine => ({
    label,
    values: all.map(of),
  });
  return (
    <section aria-labelledby="charts-title">
      <h2 id="charts-title" class="unseen">
        Charts
      </h2>
      <div id="charts">
        <Chart
          title="Requests"
          lines={[line("running", (each) => each.running), line("waiting", (each) => each.waiting)]}
          format={formatInteger}
          steps={COUNT_STEPS}
        />
        <Chart
          title="Tokens generated per second"
          lines={[line("generated", (each) => each.generated)]}
          format={formatNumber}
        />
        <Chart
          title="Prompt tokens per second"
          lines={[line("computed", (each) => each.prompted)]}
          format={formatNumber}
        />
        <Chart
          title="Time to first token"
          lines={[line("half within", firstTokenSeconds(0.5)), line("95% within", firstTokenSeconds(0.95))]}
          format={(seconds) => formatDuration(seconds * 1000)}
          unknown="no answer in 5 minutes"
        />
        <Chart
          title="Memory"
          lines={[line("daemon", (each) => each.daemonBytes), ...perModel(all, (each) => each.engineBytes)]}
          format={formatBytes}
          unknown="not loaded"
        />
        {status.value?.gpu.available === true && (
          <Chart
            title="Memory of the GPU, reserved"
            lines={perModel(all, (each) => each.gpuBytes)}
            format={formatBytes}
            unknown="not loaded"
          />
        )}
      </div>
    </section>
  );
}

function firstTokenSeconds(part: number): (sample: Sample) => number | null {
  return ({ time }) => firstTokenTime(firstTokens.value, part, time);
}

/** Returns a line for each of the largest models, and one for the sum of the others. */
function perModel(all: readonly Sample[], of: (sample: Sample) => ReadonlyMap<string, number>): ChartLine[] {
  const maxima = new Map<string, number>();
  for (const sample of all) {
    for (const [model, value] of of(sample)) maxima.set(model, Math.max(value, maxima.get(model) ?? 0));
  }
  const bySize = [...maxima].toSorted(([, one], [, other]) => other - one).map(([model]) => model);
  const largest = bySize.slice(0, MAX_ENGINES);
  const others = bySize.slice(MAX_ENGINES);
  const lines = largest.toSorted().map((model) => ({
    label: model,
    values: all.map((sample) => of(sample).get(model) ?? null),
  }));
  if (others.length === 0) return lines;
  const sum = (sample: Sample): number =>
    others.reduce((total, model) => total + (of(sample).get(model) ?? 0), 0);
  return [...lines, { label: OTHER_ENGINES, values: all.map(sum) }];
}

const CHART_HEIGHT = 150;
/** Width of the label "99.9 GB", in pixels. */
const LEFT_AXIS_WIDTH = 66;
const BOTTOM_AXIS_HEIGHT = 28;
/** Minimum time span, so that a new chart shows more than a few pixels of data. */
const MIN_SPAN_SECS = 120;
const FONT = "12px system-ui, sans-serif";
/** Dash patterns, so that lines do not differ by color only. */
const LINE_DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [], [8, 4]];
/** Synchronizes the cursors of all charts. */
const SYNC_KEY = "monitor";

/** Steps of the time axis, whose labels have no seconds. */
const TIME_STEPS_SECS = [60, 120, 300, 600];
const TIME_FORMAT = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });

interface ChartLine {
  readonly label: string;
  /** One value per time; null if unknown. */
  readonly values: readonly (number | null)[];
}

interface ChartProps {
  readonly title: string;
  readonly lines: readonly ChartLine[];
  readonly format: (value: number) => string;
  /** Possible distances of the grid lines; decimal by default. */
  readonly steps?: readonly number[] | undefined;
  /** Text for unknown values. */
  readonly unknown?: string;
}

/** A line chart with a legend of the newest values, or of those under the pointer. */
function Chart({ title, lines, format, steps, unknown }: ChartProps): JSX.Element {
  const times = samples.value.map(({ time }) => time);
  const none = unknown ?? (times.length === 0 ? "…" : "none yet");
  const id = useId();
  const figure = useRef<HTMLElement>(null);
  const container = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const pointedIndex = useSignal<number | null>(null);
  const labels = lines.map(({ label }) => label);

  useEffect(() => {
    if (!container.current || !figure.current) return undefined;
    const chart = drawChart(
      container.current,
      figure.current,
      labels,
      { format, steps },
      (index) => (pointedIndex.value = index),
    );
    plot.current = chart.plot;
    return () => {
      plot.current = undefined;
      chart.destroy();
    };
  }, [labels.join("\n")]);

  useEffect(() => {
    plot.current?.setData([[...times], ...lines.map(({ values }) => [...values])]);
  }, [lines]);

  const index = pointedIndex.value;
  const shownIndex = index ?? times.length - 1;
  const time = index === null ? undefined : times[index];
  return (
    <figure ref={figure} class="chart" aria-labelledby={id}>
      <figcaption>
        <h3 id={id}>{title}</h3>
        {time !== undefined && <small>{formatTime(new Date(time * 1000).toISOString())}</small>}
      </figcaption>
      <div
        ref={container}
        class="plot"
        role="img"
        aria-label={`${title} over the last minutes; the values follow`}
      />
      <ul>
        {lines.map(({ label, values }, line) => {
          const value = values[shownIndex] ?? null;
          return (
            <li key={label}>
              <span class={`mark line-${line + 1}`} aria-hidden="true" />
              {label} <strong>{value === null ? none : format(value)}</strong>
            </li>
          );
        })}
      </ul>
    </figure>
  );
}

/** @param point called with the index of the sample under the pointer, or null if the pointer leaves the chart */
function drawChart(
  container: HTMLElement,
  figure: HTMLElement,
  labels: readonly string[],
  { format, steps }: Pick<ChartProps, "format" | "steps">,
  point: (index: number | null) => void,
): { readonly plot: uPlot; destroy(): void } {
  // Colors come from the style sheet, which has a light and a dark scheme.
  const colorOf = (selector: string): string =>
    getComputedStyle(figure.querySelector(selector) ?? figure).color;
  const axis: uPlot.Axis = {
    stroke: () => colorOf("figcaption"),
    font: FONT,
    grid: { stroke: () => colorOf(".plot"), width: 1 },
    ticks: { show: false },
  };
  const plot = new uPlot(
    {
      width: Math.max(container.clientWidth, 1),
      height: CHART_HEIGHT,
      padding: [8, 18, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false }, points: { show: false }, sync: { key: SYNC_KEY } },
      scales: {
        x: {
          range: (_, min, max) => [Math.max(max - HISTORY_SECS, Math.min(min, max - MIN_SPAN_SECS)), max],
        },
        y: { range: (_, _min, max) => [0, max > 0 ? max * 1.1 : 1] },
      },
      axes: [
        {
          ...axis,
          size: BOTTOM_AXIS_HEIGHT,
          incrs: TIME_STEPS_SECS,
          values: (_, times) => times.map((time) => TIME_FORMAT.format(time * 1000)),
        },
        {
          ...axis,
          size: LEFT_AXIS_WIDTH,
          space: 40,
          ...(steps && { incrs: [...steps] }),
          values: (_, values) => values.map(format),
        },
      ],
      series: [
        {},
        ...labels.map((label, line) => ({
          label,
          width: 2,
          dash: LINE_DASHES[line % LINE_DASHES.length] ?? [],
          stroke: () => colorOf(`.line-${line + 1}`),
          points: { show: false },
        })),
      ],
      hooks: { setCursor: [({ cursor }) => point(cursor.idx ?? null)] },
    },
    [[], ...labels.map(() => [])],
    container,
  );
  const sizes = new ResizeObserver(() => {
    if (container.clientWidth > 0) plot.setSize({ width: container.clientWidth, height: CHART_HEIGHT });
  });
  sizes.observe(container);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const recolor = (): void => plot.redraw(false, true);
  scheme.addEventListener("change", recolor);
  return {
    plot,
    destroy() {
      sizes.disconnect();
      scheme.removeEventListener("change", recolor);
      plot.destroy();
    },
  };
}
