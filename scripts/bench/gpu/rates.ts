export interface Workload {
  /** Layers on the GPU, the output layer included; -1: all. */
  readonly layers: number;
  readonly promptTokens: number;
  readonly tokens: number;
  readonly runs: number;
  readonly threads: number;
}

/** Tokens per second, or why they could not be measured. */
export interface Speed {
  readonly prefill?: number;
  readonly decode?: number;
  readonly problem?: string;
}

export interface Rates extends Speed {
  /** File name. */
  readonly model: string;
  readonly engine: string;
  /** Where the time of a token goes, in words. */
  readonly profile?: string;
  /** The first requests after loading, with the warm-up and without, in words. */
  readonly warmUp?: string;
  /** Starts with and without what an earlier one has compiled, in words. */
  readonly starts?: string;
}

/** The fastest run: others of the same work were only held up. */
export function fastest(runs: readonly { readonly prefill: number; readonly decode: number }[]): Speed {
  return {
    prefill: Math.max(...runs.map(({ prefill }) => prefill)),
    decode: Math.max(...runs.map(({ decode }) => decode)),
  };
}

/** A row for each engine, with the speed through Dawn as a multiple of the engine's own. */
export function formatRates(all: readonly Rates[]): string {
  const lines = [
    "| model | engine | prefill tokens/s | Dawn / it | decode tokens/s | Dawn / it |",
    "|---|---|---:|---:|---:|---:|",
  ];
  for (const { model, engine, prefill, decode, problem } of all) {
    if (prefill === undefined || decode === undefined) {
      lines.push(`| ${model} | ${engine} | ${oneLine(problem ?? "")} | | | |`);
      continue;
    }
    const dawn = all.find((each) => each.model === model && each.engine.startsWith("Dawn"));
    lines.push(
      `| ${model} | ${engine} | ${prefill.toFixed(1)} | ${ratio(prefill, dawn?.prefill)} | ${decode.toFixed(1)} | ${ratio(decode, dawn?.decode)} |`,
    );
  }
  return lines.join("\n");
}

function ratio(rate: number, dawn: number | undefined): string {
  return dawn === undefined ? "" : `${(dawn / rate).toFixed(2)} x`;
}

/** Returns the first line of a text, cut to the width of a table cell. */
function oneLine(text: string): string {
  return text.trim().replaceAll(/\s+/g, " ");
}
