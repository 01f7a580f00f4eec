import { FLEET_MODEL, TestFleet } from "../../../test/support/test-fleet.ts";
import type { TestDaemon } from "../../../test/support/start-daemon.ts";
import { markdownTable, median, spread } from "../daemon/statistics.ts";
import { closeConnections, plainClient } from "../daemon/stream-client.ts";
import { processorMs } from "../cpu/processor-time.ts";

/** Runs of each side before those that count. */
const WARM_UP = 10;

/** Of one answer, in milliseconds. */
interface Timing {
  readonly firstToken: number;
  readonly all: number;
  /** Processor time of the daemon that has the model, and of the other one; without engines. */
  readonly worker: number;
  readonly entrance: number;
}

/** What another machine costs: the daemon that has the model asked directly, and through one that has not. */
export async function measureFleet(runs: number, tokens: number): Promise<string> {
  const fleet = await TestFleet.start();
  try {
    const worker = await fleet.join("worker");
    const entrance = await fleet.join("entrance", { hasModel: false });
    await fleet.complete(entrance, 2, 1);
    const direct: Timing[] = [];
    const passedOn: Timing[] = [];
    for (let run = -WARM_UP; run < runs; run += 1) {
      // Who is first takes turns as well.
      const sides = [
        [worker, direct],
        [entrance, passedOn],
      ] as const;
      for (const [daemon, timings] of run % 2 === 0 ? sides : sides.toReversed()) {
        const timing = await measure(daemon, { worker, entrance }, tokens);
        if (run >= 0) timings.push(timing);
      }
    }
    return report(direct, passedOn, tokens);
  } finally {
    closeConnections();
    await fleet.stop();
  }
}

async function measure(
  { url }: TestDaemon,
  daemons: { readonly worker: TestDaemon; readonly entrance: TestDaemon },
  tokens: number,
): Promise<Timing> {
  const body = {
    model: FLEET_MODEL,
    prompt: "once upon a time there was",
    max_tokens: tokens,
    temperature: 0,
    ignore_eos: true,
    stream: true,
  };
  const before = {
    worker: processorMs(daemons.worker.pid),
    entrance: processorMs(daemons.entrance.pid),
  };
  const startedAt = performance.now();
  let first = 0;
  await plainClient(`${url}/api/generate`, body, () => {
    first ||= performance.now();
  });
  return {
    firstToken: first - startedAt,
    all: performance.now() - startedAt,
    worker: processorMs(daemons.worker.pid) - before.worker,
    entrance: processorMs(daemons.entrance.pid) - before.entrance,
  };
}

function report(direct: readonly Timing[], passedOn: readonly Timing[], tokens: number): string {
  const row = (name: string, timings: readonly Timing[]): string[] => [
    name,
    spread(timings.map(({ firstToken }) => firstToken)),
    spread(timings.map(({ all }) => all)),
    spread(timings.map(({ worker }) => worker)),
    spread(timings.map(({ entrance }) => entrance)),
  ];
  const table = markdownTable(
    ["ms", "first token", `${tokens} tokens`, "processor time: worker", "entrance"],
    [row("asked directly", direct), row("through another machine", passedOn)],
  );
  // Of two runs in a row: what else the machine does changes slowly.
  const pairs = passedOn.flatMap((timing, run) => {
    const other = direct[run];
    return other ? [{ timing, other }] : [];
  });
  const added = (of: (timing: Timing) => number): string =>
    median(pairs.map(({ timing, other }) => of(timing) - of(other))).toFixed(1);
  const longer = median(pairs.map(({ timing, other }) => timing.all / other.all - 1)) * 100;
  return [
    table,
    "",
    "Medians of the differences of two runs in a row:",
    `first token ${added(({ firstToken }) => firstToken)} ms, ${tokens} tokens ${added(({ all }) => all)} ms (${longer.toFixed(1)} percent), ` +
      `processor time of both daemons ${added(({ worker, entrance }) => worker + entrance)} ms.`,
  ].join("\n");
}
