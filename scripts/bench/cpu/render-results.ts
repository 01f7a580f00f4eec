import { markdownTable, median, spread } from "../daemon/statistics.ts";
import { type EngineName, type Figure, type Measurement, type Results } from "./results.ts";

/** Everything that was measured as Markdown: rates with their ratios to native llama.cpp, streams, first prefills. */
export function renderResults({ machine, measurements }: Results): string {
  const versions = new Set(measurements.map(({ engine, version }) => `${engine}: ${version}`));
  const workloads = new Set(measurements.map(({ engine, workload }) => `${engine}: ${workload}`));
  const sections = [rates(measurements), streams(measurements), firstPrefills(measurements)];
  return [machine, ...versions, ...workloads, ...sections.filter(Boolean)].join("\n\n");
}

function rates(measurements: readonly Measurement[]): string {
  const rows = groups(measurements).flatMap((group) =>
    (["prefill", "decode"] as const)
      .filter((figure) => group.some((each) => each.figures[figure].length > 0))
      .map((figure) => {
        const { shape, quantization, threads } = group[0]!;
        const cell = (engine: EngineName): string => cellOf(group, engine, figure);
        return [
          `${shape} ${quantization}, ${threads} ${threads === 1 ? "thread" : "threads"}`,
          figure,
          cell("stock"),
          cell("daybreak"),
          cell("native"),
          ratio(group, "stock", figure),
          ratio(group, "daybreak", figure),
        ];
      }),
  );
  if (rows.length === 0) return "";
  return markdownTable(
    ["", "tokens/s", "stock", "Daybreak", "native", "stock / native", "Daybreak / native"],
    rows,
  );
}

function streams(measurements: readonly Measurement[]): string {
  return comparison(measurements, "oneStream", "fourStreams", [
    "",
    "one stream, tokens/s",
    "four streams, tokens/s of all",
    "four / one",
  ]);
}

function firstPrefills(measurements: readonly Measurement[]): string {
  return comparison(measurements, "firstPrefill", "secondPrefill", [
    "",
    "first prefill after loading, tokens/s",
    "second, tokens/s",
    "first / second",
  ]);
}

/** Two figures of each engine beside each other; the ratio is run by run. */
function comparison(
  measurements: readonly Measurement[],
  one: Figure,
  other: Figure,
  head: readonly string[],
): string {
  const rows = measurements
    .filter(({ figures }) => figures[one].length > 0)
    .map(({ shape, quantization, threads, engine, figures }) => {
      const isFirst = one === "firstPrefill";
      const ratios = figures[one].map((value, run) =>
        isFirst ? value / figures[other][run]! : figures[other][run]! / value,
      );
      const name = `${shape} ${quantization}, ${threads} ${threads === 1 ? "thread" : "threads"}, ${engine}`;
      return [name, spread(figures[one]), spread(figures[other]), spread(ratios, 2)];
    });
  return rows.length === 0 ? "" : markdownTable(head, rows);
}

function groups(measurements: readonly Measurement[]): Measurement[][] {
  const byModel = Map.groupBy(measurements, ({ shape, quantization, threads }) =>
    [shape, quantization, threads].join(" "),
  );
  return [...byModel.values()];
}

function cellOf(group: readonly Measurement[], engine: EngineName, figure: Figure): string {
  const values = valuesOf(group, engine, figure);
  return values.length > 0 ? spread(values) : "";
}

function ratio(group: readonly Measurement[], engine: EngineName, figure: Figure): string {
  const [ours, native] = [valuesOf(group, engine, figure), valuesOf(group, "native", figure)];
  return ours.length > 0 && native.length > 0 ? (median(ours) / median(native)).toFixed(2) : "";
}

function valuesOf(group: readonly Measurement[], engine: EngineName, figure: Figure): readonly number[] {
  return group.find((each) => each.engine === engine)?.figures[figure] ?? [];
}
