import { FLEET_MODEL, TestFleet } from "../../../test/support/test-fleet.ts";
import type { TestDaemon } from "../../../test/support/start-daemon.ts";
import { markdownTable, median, spread } from "../daemon/statistics.ts";
import { closeConnections, plainClient } from "../daemon/stream-client.ts";

interface Timing {
  readonly firstTokenMs: number;
  readonly tokensPerSecond: number;
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
    for (let run = -3; run < runs; run += 1) {
      // Who is first takes turns as well.
      const sides = [
        [worker, direct],
        [entrance, passedOn],
      ] as const;
      for (const [daemon, timings] of run % 2 === 0 ? sides : sides.toReversed()) {
        const timing = await measure(daemon, tokens);
        if (run >= 0) timings.push(timing);
      }
    }
    return report(direct, passedOn);
  } finally {
    closeConnections();
    await fleet.stop();
  }
}

async function measure({ url }: TestDaemon, tokens: number): Promise<Timing> {
  const body = {
    model: FLEET_MODEL,
    prompt: "once upon a time there was",
    max_tokens: tokens,
    temperature: 0,
    ignore_eos: true,
    stream: true,
  };
  const startedAt = performance.now();
  let first = 0;
  let pieces = 0;
  await plainClient(`${url}/api/generate`, body, (text) => {
    first ||= performance.now();
    pieces += text.split("\n").length - 1;
  });
  const seconds = (performance.now() - first) / 1000;
  return { firstTokenMs: first - startedAt, tokensPerSecond: (pieces - 2) / seconds };
}

function report(direct: readonly Timing[], passedOn: readonly Timing[]): string {
  const row = (name: string, timings: readonly Timing[]): string[] => [
    name,
    spread(timings.map(({ firstTokenMs }) => firstTokenMs)),
    spread(timings.map(({ tokensPerSecond }) => tokensPerSecond)),
  ];
  const added =
    median(passedOn.map((each) => each.firstTokenMs)) - median(direct.map((each) => each.firstTokenMs));
  const ratio =
    median(passedOn.map((each) => each.tokensPerSecond)) / median(direct.map((each) => each.tokensPerSecond));
  const table = markdownTable(
    ["", "first token (ms)", "tokens/s"],
    [row("asked directly", direct), row("through another machine", passedOn)],
  );
  return `${table}\n\nFirst token: ${added.toFixed(1)} ms later. Tokens/s: ${ratio.toFixed(3)} of the speed.`;
}
