import type { JSX } from "preact";
import { Chart, type ChartLine } from "./chart.tsx";
import { bytes, count, duration, short } from "./format.ts";
import { firstTokens, samples, status } from "./monitor-state.ts";
import { firstTokenTime, type Sample } from "./samples.ts";

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
