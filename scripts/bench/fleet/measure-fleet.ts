import { link, mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import type { TestDaemon } from "../../../test/support/start-daemon.ts";
import { FLEET_MODEL, TestFleet } from "../../../test/support/test-fleet.ts";
import { processorMs } from "../cpu/processor-time.ts";
import { describeMachine } from "../cpu/results.ts";
import { markdownTable, median, spread } from "../daemon/statistics.ts";
import { closeConnections, plainClient } from "../daemon/stream-client.ts";

/** A service that has just started runs code that V8 has not compiled yet: so many short answers do not count, and so long whole ones. */
const WARM_UP = 150;
const WARM_UP_MS = 15_000;
/** Enough for a first token. */
const SHORT_ANSWER = 2;
/** Times to the first token vary a lot and are cheap to measure, so many are taken beside each whole answer. */
const SHORT_ANSWERS = 5;

interface FleetWorkload {
  readonly runs: number;
  /** Tokens of a complete answer. */
  readonly tokens: number;
  /** The file of a model; absent: a tiny one. */
  readonly model?: string;
}

/** Times of one answer, in milliseconds. */
interface Timing {
  readonly firstToken: number;
  /** From the first token to the end. */
  readonly rest: number;
  /** Processor time of the daemon that has the model, and of the other one; without engines. */
  readonly worker: number;
  readonly entrance: number;
}

/** The same answer, by the daemon that has the model itself and by way of the other one, one right after the other. */
interface Pair {
  readonly direct: Timing;
  readonly passedOn: Timing;
}

/** Compares a daemon that has the model, asked directly, with one that forwards the request to it. */
export async function measureFleet({ runs, tokens, model }: FleetWorkload): Promise<string> {
  const { name, folder } = model === undefined ? { name: FLEET_MODEL } : await alone(model);
  const fleet = await TestFleet.start();
  try {
    const worker = await fleet.join("worker", {
      folders: folder === undefined ? [] : [folder],
      env: { SERVICE_MODELS_LOAD: [...new Set([FLEET_MODEL, name])].join(",") },
    });
    const entrance = await fleet.join("entrance", { hasModel: false });
    await fleet.complete(entrance, 2, 1);
    let pairs = 0;
    const pair = async (maxTokens: number): Promise<Pair> => {
      const timings: Partial<Record<keyof Pair, Timing>> = {};
      const sides = [["direct", worker] as const, ["passedOn", entrance] as const];
      pairs += 1;
      // Who is first takes turns as well.
      for (const [side, daemon] of pairs % 2 === 0 ? sides : sides.toReversed())
        timings[side] = await measure(daemon, name, maxTokens, { worker, entrance });
      return { direct: timings.direct!, passedOn: timings.passedOn! };
    };
    for (let run = 0; run < WARM_UP; run += 1) await pair(SHORT_ANSWER);
    const [short, whole]: [Pair[], Pair[]] = [[], []];
    for (const until = performance.now() + WARM_UP_MS; performance.now() < until;) await pair(tokens);
    for (let run = 0; run < runs; run += 1) {
      for (let each = 0; each < SHORT_ANSWERS; each += 1) short.push(await pair(SHORT_ANSWER));
      whole.push(await pair(tokens));
    }
    return report(short, whole, tokens);
  } finally {
    closeConnections();
    await fleet.stop();
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  }
}

/** A folder with a model and no other, beside its file. */
async function alone(model: string): Promise<{ readonly name: string; readonly folder: string }> {
  const folder = await mkdtemp(path.join(path.dirname(path.resolve(model)), "fleet-"));
  await link(model, path.join(folder, path.basename(model)));
  return { name: path.basename(model, ".gguf"), folder };
}

async function measure(
  { url }: TestDaemon,
  model: string,
  tokens: number,
  daemons: { readonly worker: TestDaemon; readonly entrance: TestDaemon },
): Promise<Timing> {
  const body = {
    model,
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
    rest: performance.now() - first,
    worker: processorMs(daemons.worker.pid) - before.worker,
    entrance: processorMs(daemons.entrance.pid) - before.entrance,
  };
}

function total({ firstToken, rest }: Timing): number {
  return firstToken + rest;
}

/** Returns the processor time of both daemons. */
function processor({ worker, entrance }: Timing): number {
  return worker + entrance;
}

function report(short: readonly Pair[], whole: readonly Pair[], tokens: number): string {
  const rate = ({ rest }: Timing): number => ((tokens - 1) / rest) * 1000;
  const row = (name: string, side: keyof Pair): string[] => [
    name,
    spread(short.map((pair) => pair[side].firstToken)),
    spread(whole.map((pair) => rate(pair[side]))),
    spread(whole.map((pair) => total(pair[side]))),
    spread(whole.map((pair) => pair[side].worker)),
    spread(whole.map((pair) => pair[side].entrance)),
  ];
  // Of two answers in a row: what else the machine does changes slowly.
  const added = (pairs: readonly Pair[], of: (timing: Timing) => number): string =>
    median(pairs.map(({ direct, passedOn }) => of(passedOn) - of(direct))).toFixed(1);
  const percent = (of: (timing: Timing) => number): string =>
    (median(whole.map(({ direct, passedOn }) => of(passedOn) / of(direct) - 1)) * 100).toFixed(1);
  return [
    `${describeMachine()}, load average ${os.loadavg()[0]?.toFixed(1)}`,
    "",
    markdownTable(
      [
        "",
        "first token, ms",
        "tokens/s after it",
        `${tokens} tokens, ms`,
        "processor time, ms: worker",
        "entrance",
      ],
      [row("asked directly", "direct"), row("through another machine", "passedOn")],
    ),
    "",
    "Medians of the differences of two answers in a row:",
    `first token ${added(short, ({ firstToken }) => firstToken)} ms, tokens/s after it ${percent(rate)} percent, ` +
      `${tokens} tokens ${added(whole, total)} ms (${percent(total)} percent), processor time of both daemons ` +
      `${added(short, processor)} ms for ${SHORT_ANSWER} tokens and ${added(whole, processor)} ms for ${tokens}.`,
  ].join("\n");
}
