#!/usr/bin/env node
import { rmSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ChannelError, FrameReader } from "../../../src/engine/channel/frame.ts";
import { ENGINE_MESSAGE_KINDS } from "../../../src/engine/channel/message-limits.ts";
import { MessageCodec } from "../../../src/engine/channel/message-codec.ts";
import type { Engine } from "../../../src/engine/engine.ts";
import { isRunning } from "../../../src/engine/child-process.ts";
import { spawnEngine } from "../../../src/engine/launch.ts";
import { engineMessageSchema } from "../../../src/engine/protocol/messages.ts";
import { createEngineStarter } from "../../../src/engine/start-engine.ts";
import { ServiceError } from "../../../src/errors/service-error.ts";
import {
  collect,
  engineSpec,
  NEVER,
  promptRequest,
  startEngine,
  temporaryFolder,
  textOf,
  writeModel,
} from "../../../test/support/engine-fixture.ts";
import { tinyLlama } from "../../../test/support/tiny-models.ts";
import { hostileAnswer, hostileWay } from "./channel/hostile-frames.ts";
import { atOnce, Findings } from "./kit/findings.ts";
import { Random } from "./kit/random.ts";
import { readRunOptions } from "./kit/run-options.ts";
import { TurnWatch } from "./kit/turn-watch.ts";
import { generated } from "../../../test/support/generated.ts";

const options = readRunOptions(
  `
Lets processes that stand in for engines send forged, cut, endless and far too many messages to the daemon's own code,
and changed bytes to what reads them. Each may end that engine alone, with a reason: this process stays, its event
loop and its memory too, and the text of an honest engine beside them is what it always is.

  node scripts/test/withstand/channel.ts [options]`,
  { seconds: 60 },
);

/** Hostile engines at the same time. */
const AT_ONCE = 3;
/** Part of the time for answers that are read without a process. */
const READ_PART = 0.2;
const STALL_MS = 1500;
const LOAD_MS = 20_000;
/** Time after which the caller gives up. An endless answer is not wrong by itself. */
const DEADLINE_MS = 5000;
/** Every call has to end within this time, whatever the engine does. */
const LONGEST_CALL_MS = 12_000;
/** A consumer that does not read has the engine's words wait. */
const SLOW_READER_CHANCE = 0.3;
const SLOW_READER_MS = 300;
/** Longest time that a turn may hold the event loop; one takes far less, but this process makes the attacks as well. */
const LONGEST_HOLD_MS = 1000;
/** Growth that buffers for slow readers and garbage not yet collected may cause. */
const MAX_GROWTH_BYTES = 512 * 1024 * 1024;

const HOSTILE_ENGINE = path.join(import.meta.dirname, "channel", "hostile-engine.ts");
const random = new Random(options.seed);
const findings = new Findings("channel", options);
const folder = temporaryFolder();
const modelFile = writeModel(folder, "model", tinyLlama({ blocks: 1 }));
const codec = new MessageCodec(ENGINE_MESSAGE_KINDS);
process.on("uncaughtException", (error) =>
  findings.add("an exception that nobody caught", String(error.stack)),
);
process.on("unhandledRejection", (error) => findings.add("a rejection that nobody handled", String(error)));

const canary = await startEngine(engineSpec(modelFile, { slots: 1 }));
const canaryRequest = promptRequest("Once upon a time", { maxTokens: 64 });
const expected = textOf(await collect(generated(canary, canaryRequest, NEVER)));
for (
  const until = performance.now() + READ_PART * 1000 * options.seconds;
  performance.now() < until;
  await sleep(0)
) {
  read(random.int(0, 2 ** 31 - 1));
}
const before = process.memoryUsage.rss();
let mostGrowth = 0;
const turns = new TurnWatch();

const ended = new AbortController();
const singing = sing(ended.signal);
await atOnce(AT_ONCE, findings, attack);
ended.abort();
const streams = await singing;
if (mostGrowth > MAX_GROWTH_BYTES) findings.add("memory was filled", `${mostGrowth} bytes more`);
const holdMs = Math.round(turns.stop());
if (holdMs > LONGEST_HOLD_MS) findings.add("the event loop was held", `${holdMs} ms`);
await canary.close();
rmSync(folder, { recursive: true });
findings.finish({
  "streams of the honest engine": streams,
  "event loop held at most (ms)": holdMs,
  "most memory more (MB)": Math.round(mostGrowth / 1e6),
});

/** The honest engine's text, again and again. Resolves with the number of its streams. */
async function sing(signal: AbortSignal): Promise<number> {
  let songs = 0;
  while (!signal.aborted) {
    try {
      const text = textOf(await collect(generated(canary, canaryRequest, NEVER)));
      if (text !== expected) findings.add("another model's stream was disturbed", JSON.stringify(text));
    } catch (error) {
      findings.add("another model's stream was disturbed", String(error));
      return songs;
    }
    songs += 1;
    await sleep(50);
  }
  return songs;
}

async function attack(input: number): Promise<void> {
  const seed = random.int(0, 2 ** 31 - 1);
  const where = `input ${input}, engine seed ${seed}: ${hostileWay(new Random(seed))}`;
  let pid = 0;
  let engine: Engine | undefined;
  const start = createEngineStarter({
    loadTimeoutMs: LOAD_MS,
    stallTimeoutMs: STALL_MS,
    spawn: () => {
      const child = spawnEngine(process.execPath, [HOSTILE_ENGINE, String(seed)], { env: {}, cwd: folder });
      pid = child.pid ?? 0;
      return child;
    },
  });
  try {
    engine = await start(engineSpec(modelFile, { slots: 1 }));
    await within(where, use(engine, new Random(seed)));
    findings.count("calls that ended well");
  } catch (error) {
    if (error instanceof ServiceError) findings.count(`calls that ended with ${error.code}`);
    else if (isTimeout(error)) findings.count("calls that their caller gave up");
    else findings.add("a call ended without a reason of ours", `${where}: ${String(error)}`);
  }
  mostGrowth = Math.max(mostGrowth, process.memoryUsage.rss() - before);
  if (engine) await within(where, engine.close());
  if (pid !== 0 && isRunning(pid)) findings.add("an engine was left running", where);
}

/** Reads the answer as it comes, or slowly. */
async function use(engine: Engine, choices: Random): Promise<void> {
  const isSlow = choices.chance(SLOW_READER_CHANCE);
  for await (const event of generated(engine, promptRequest("Hi"), AbortSignal.timeout(DEADLINE_MS))) {
    if (isSlow && event.type !== "done") await sleep(SLOW_READER_MS);
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === "TimeoutError";
}

async function within(where: string, work: Promise<void>): Promise<void> {
  const timeout = new AbortController();
  const late = sleep(LONGEST_CALL_MS, "late", { signal: timeout.signal });
  const first = await Promise.race([work, late]).finally(() => timeout.abort());
  late.catch(() => undefined);
  if (first === "late") findings.add("a call did not end", where);
}

/** Reads messages without a process: each must be accepted or rejected. */
function read(seed: number): void {
  const choices = new Random(seed);
  const { name, pieces } = hostileAnswer(1, choices);
  const bytes = Buffer.concat(pieces);
  const reader = new FrameReader(codec.limitsOf);
  findings.count("answers read without a process");
  try {
    for (let start = 0; start < bytes.length;) {
      const end = Math.min(bytes.length, start + choices.int(1, 70_000));
      reader.push(bytes.subarray(start, end));
      start = end;
      for (let frame = reader.next(); frame; frame = reader.next()) {
        if (!engineMessageSchema.safeParse(codec.decode(frame)).success) return;
      }
    }
  } catch (error) {
    if (error instanceof ChannelError) return;
    findings.add("a message broke what reads it", `seed ${seed}, ${name}: ${String(error)}`);
  }
}
