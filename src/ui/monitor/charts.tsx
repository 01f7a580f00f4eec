import { useComputed, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import uPlot from "uplot";
import { bytes, count, duration, moment, short } from "./format.ts";
import { firstTokens, samples, status } from "./monitor-state.ts";
import { firstTokenTime, KEPT_SECS, type Sample } from "./samples.ts";

/** More lines cannot be told apart; the smallest engines are one line together. */
const MAX_ENGINES = 4;
const OTHERS = "Other engines";
/** Steps of a grid of bytes: powers of two up to 16 TiB, so that its lines are round in MiB and GiB. */
const BYTE_STEPS = Array.from({ length: 35 }, (_, power) => 1024 * 2 ** power);
/** Requests are whole. */
const WHOLE_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/** What the daemon does, over the last minutes. */
export function Charts(): JSX.Element {
  const all = samples.value;
  const times = all.map(({ time }) => time);
  const line = (label: string, of: (sample: Sample) => number | null): ChartLine => ({
    label,
    values: all.map(of),
  });
  const none = all.length === 0 ? "…" : "none yet";
  return (
    <section aria-labelledby="charts-title">
      <h2 id="charts-title" class="unseen">
        Charts
      </h2>
      <div id="charts">
        <Chart
          title="Requests"
          times={times}
          lines={[line("running", (each) => each.running), line("waiting", (each) => each.waiting)]}
          format={count}
          steps={WHOLE_STEPS}
          unknown={none}
        />
        <Chart
          title="Tokens generated per second"
          times={times}
          lines={[line("generated", (each) => each.generated)]}
          format={short}
          unknown={none}
        />
        <Chart
          title="Prompt tokens per second"
          times={times}
          lines={[line("computed", (each) => each.prompted)]}
          format={short}
          unknown={none}
        />
        <Chart
          title="Time to first token"
          times={times}
          lines={[line("half within", firstToken(0.5)), line("95% within", firstToken(0.95))]}
          format={(seconds) => duration(seconds * 1000)}
          unknown="no answer in 5 minutes"
        />
        <Chart
          title="Memory"
          times={times}
          lines={[line("daemon", (each) => each.daemonBytes), ...perModel(all, (each) => each.engineBytes)]}
          format={bytes}
          steps={BYTE_STEPS}
          unknown="not loaded"
        />
        {status.value?.gpu.available === true && (
          <Chart
            title="Memory of the GPU, reserved"
            times={times}
            lines={perModel(all, (each) => each.gpuBytes)}
            format={bytes}
            steps={BYTE_STEPS}
            unknown="not loaded"
          />
        )}
      </div>
    </section>
  );
}

function firstToken(part: number): (sample: Sample) => number | null {
  return ({ time }) => firstTokenTime(firstTokens.value, part, time);
}

/** A line for each of the largest models of late, and one for all others. */
function perModel(all: readonly Sample[], of: (sample: Sample) => ReadonlyMap<string, number>): ChartLine[] {
  const most = new Map<string, number>();
  for (const sample of all) {
    for (const [model, value] of of(sample)) most.set(model, Math.max(value, most.get(model) ?? 0));
  }
  const bySize = [...most].toSorted(([, one], [, other]) => other - one).map(([model]) => model);
  const shown = bySize.slice(0, MAX_ENGINES);
  const rest = bySize.slice(MAX_ENGINES);
  const lines = shown.toSorted().map((model) => ({
    label: model,
    values: all.map((sample) => of(sample).get(model) ?? null),
  }));
  if (rest.length === 0) return lines;
  const sum = (sample: Sample): number =>
    rest.reduce((total, model) => total + (of(sample).get(model) ?? 0), 0);
  return [...lines, { label: OTHERS, values: all.map(sum) }];
}

const HEIGHT = 150;
/** Room for "1.25 GiB". */
const LEFT_AXIS = 66;
const BOTTOM_AXIS = 28;
/** A chart that has just begun is not mostly empty. */
const LEAST_SECS = 120;
const FONT = "12px system-ui, sans-serif";
/** Lines differ by more than their color. */
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [], [8, 4]];
/** Charts show the same moment where a pointer is on one of them. */
const TOGETHER = "monitor";

/** Seconds between two times of the axis, which are written without seconds. */
const MINUTES = [60, 120, 300, 600];
const TIME = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });

interface ChartLine {
  readonly label: string;
  /** One for each time; null: not known. */
  readonly values: readonly (number | null)[];
}

interface ChartProps {
  readonly title: string;
  /** Unix seconds. */
  readonly times: readonly number[];
  readonly lines: readonly ChartLine[];
  readonly format: (value: number) => string;
  /** Values that may lie between two lines of the grid; absent: decimal ones. */
  readonly steps?: readonly number[] | undefined;
  /** In place of a value that is not known. */
  readonly unknown: string;
}

/** Lines over the last minutes, with their values in words: the newest, or those under the pointer. */
function Chart({ title, times, lines, format, steps, unknown }: ChartProps): JSX.Element {
  const id = useId();
  const figure = useRef<HTMLElement>(null);
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const pointed = useSignal<number | null>(null);
  const labels = lines.map(({ label }) => label);

  useEffect(() => {
    if (!place.current || !figure.current) return undefined;
    const made = drawIn(
      place.current,
      figure.current,
      labels,
      { format, steps },
      (index) => (pointed.value = index),
    );
    plot.current = made.plot;
    return () => {
      plot.current = undefined;
      made.destroy();
    };
  }, [labels.join("\n")]);

  useEffect(() => {
    plot.current?.setData([[...times], ...lines.map(({ values }) => [...values])]);
  }, [times, lines]);

  const index = useComputed(() => pointed.value);
  const shown = index.value ?? times.length - 1;
  const time = index.value === null ? undefined : times[index.value];
  return (
    <figure ref={figure} class="chart" aria-labelledby={id}>
      <figcaption>
        <h3 id={id}>{title}</h3>
        {time !== undefined && <small>{moment(new Date(time * 1000).toISOString())}</small>}
      </figcaption>
      <div
        ref={place}
        class="plot"
        role="img"
        aria-label={`${title} over the last minutes; the values follow`}
      />
      <ul>
        {lines.map(({ label, values }, line) => {
          const value = values[shown] ?? null;
          return (
            <li key={label}>
              <span class={`mark line-${line + 1}`} aria-hidden="true" />
              {label} <strong>{value === null ? unknown : format(value)}</strong>
            </li>
          );
        })}
      </ul>
    </figure>
  );
}

/** @param point called with the index of the sample under the pointer; null: the pointer is elsewhere */
function drawIn(
  place: HTMLElement,
  figure: HTMLElement,
  labels: readonly string[],
  { format, steps }: Pick<ChartProps, "format" | "steps">,
  point: (index: number | null) => void,
): { readonly plot: uPlot; destroy(): void } {
  // The style sheet decides, and it knows whether the page is dark.
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
      width: Math.max(place.clientWidth, 1),
      height: HEIGHT,
      padding: [8, 18, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false }, points: { show: false }, sync: { key: TOGETHER } },
      scales: {
        x: { range: (_, min, max) => [Math.max(max - KEPT_SECS, Math.min(min, max - LEAST_SECS)), max] },
        y: { range: (_, _min, max) => [0, max > 0 ? max * 1.1 : 1] },
      },
      axes: [
        {
          ...axis,
          size: BOTTOM_AXIS,
          incrs: MINUTES,
          values: (_, times) => times.map((time) => TIME.format(time * 1000)),
        },
        {
          ...axis,
          size: LEFT_AXIS,
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
          dash: DASHES[line % DASHES.length] ?? [],
          stroke: () => colorOf(`.line-${line + 1}`),
          points: { show: false },
        })),
      ],
      hooks: { setCursor: [({ cursor }) => point(cursor.idx ?? null)] },
    },
    [[], ...labels.map(() => [])],
    place,
  );
  const sizes = new ResizeObserver(() => {
    if (place.clientWidth > 0) plot.setSize({ width: place.clientWidth, height: HEIGHT });
  });
  sizes.observe(place);
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
