import type { LayerTimings } from "./measure-layers.ts";
import type { StreamTiming } from "./measure-stream.ts";
import { markdownTable, spread } from "./statistics.ts";

const MIB = 1024 * 1024;

export interface ClientsRow {
  readonly clients: number;
  /** Rate of all clients together. */
  readonly tokensPerSecond: number;
  readonly firstTokenMs: readonly number[];
}

export interface BenchResult {
  readonly machine: string;
  readonly readyMs: readonly number[];
  readonly layers: LayerTimings;
  readonly clients: readonly ClientsRow[];
  readonly memory: { readonly daemonBytes: number; readonly withEngineBytes: number };
}

/** The tables of docs/benchmarks.md. */
export function renderReport({ machine, readyMs, layers, clients, memory }: BenchResult): string {
  const { inProcess, overHttp, first, bare } = layers;
  const slower = inProcess.map(
    (timing, run) => (1 - overHttp[run]!.tokensPerSecond / timing.tokensPerSecond) * 100,
  );
  return [
    machine,
    "",
    `Time to ready: ${spread(readyMs, 0)} ms`,
    "",
    markdownTable(
      ["", "engine in this process", "daemon over HTTP", "difference, run by run"],
      [
        [
          "first token, ms",
          spread(first.inProcess),
          spread(first.overHttp),
          `${delay(first.inProcess, first.overHttp)} ms`,
        ],
        [
          "the same with fetch()",
          "",
          spread(first.overFetch),
          `${delay(first.inProcess, first.overFetch)} ms`,
        ],
        ["tokens/s", spread(rates(inProcess)), spread(rates(overHttp)), `${spread(slower)} percent slower`],
      ],
    ),
    "",
    ...(clients.length > 0 ? [clientsTable(clients), ""] : []),
    `A bare request over HTTP (GET /health): ${spread(bare.plain)} ms, with fetch() ${spread(bare.fetch)} ms`,
    `Memory: daemon ${mib(memory.daemonBytes)} MiB, with its engine ${mib(memory.withEngineBytes)} MiB`,
  ].join("\n");
}

function clientsTable(clients: readonly ClientsRow[]): string {
  return markdownTable(
    ["clients at once", "tokens/s of all", "first token, ms"],
    clients.map((row) => [String(row.clients), row.tokensPerSecond.toFixed(1), spread(row.firstTokenMs, 0)]),
  );
}

function delay(before: readonly number[], after: readonly number[]): string {
  return spread(before.map((millis, run) => after[run]! - millis));
}

function rates(timings: readonly StreamTiming[]): number[] {
  return timings.map((timing) => timing.tokensPerSecond);
}

function mib(bytes: number): string {
  return (bytes / MIB).toFixed(0);
}
