#!/usr/bin/env node
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { writeModel } from "../../../test/support/engine-fixture.ts";
import { postJson } from "../../../test/support/post-json.ts";
import { tinyLlama } from "../../../test/support/tiny-models.ts";
import { atOnce, Findings } from "./kit/findings.ts";
import { median } from "../../bench/daemon/statistics.ts";
import { engineProcesses } from "../../../test/support/engine-processes.ts";
import { Random } from "./kit/random.ts";
import { readRunOptions } from "./kit/run-options.ts";
import { WatchedDaemon } from "./kit/watched-daemon.ts";

const options = readRunOptions(
  `
Kills engines at random moments: while they load, read a prompt, generate, idle, and are unloaded; by signals that end
them, and by one that stops them. The daemon must live, /health must answer, another model's streams must be whole, a
request that was cut must say so, the next request must be answered soon, and no engine may be left over. How daemons
are killed in the middle of changes and downloads, shared-cache.ts and hub.ts show.

  node scripts/test/withstand/kills.ts [options]`,
  { seconds: 60 },
);

const SIGNALS = ["SIGKILL", "SIGSEGV", "SIGABRT", "SIGTERM", "SIGSTOP"] as const;
/** Processes to kill: the engine itself, or the sandbox around it, where there is one. */
const TARGETS = ["engine", "sandbox"] as const;
const PHASES = ["load", "prompt", "generate", "idle", "unload"] as const;
/** Models under attack at the same time. */
const MODELS = ["attacked-1", "attacked-2", "attacked-3"];
/** An engine that was stopped is given up after this; so is one that a busy machine does not run for as long. */
const STALL_SECONDS = 5;
/** The same for one that was stopped while it loaded. */
const LOAD_SECONDS = 10;
/** Waiting for the engine to be given up, and loading the model again on a busy machine. */
const LONGEST_RECOVERY_MS = 60_000;
/** Longest time from the end of a killed daemon to the end of its processes. */
const LONGEST_END_MS = 10_000;
/** Within this time from the beginning of a phase the signal is sent. */
const LATEST_MS = 400;
const ERROR = z.object({ error: z.object({ code: z.string(), message: z.string() }) });
/** Errors that are allowed for requests that lost their engine or arrived while it was being replaced. */
const EXPECTED: ReadonlySet<string> = new Set([
  "engine_crashed",
  "deadline_exceeded",
  "model_load_failed",
  "model_busy",
  "model_loading",
  "model_not_loaded",
  "model_already_loaded",
  "model_already_unloaded",
]);
const HELD_BACK = /will be retried in (\d+) s/;

interface Answer {
  readonly status: number;
  readonly text: string;
}

const PHASE_REQUESTS: Readonly<Record<(typeof PHASES)[number], (model: string) => Promise<Answer>>> = {
  load: async (model) => await post("/api/models/load", { alias: model, path: files.get(model) }),
  prompt: async (model) => await generate(model, "a word and another one, ".repeat(60), 1),
  generate: async (model) => await generate(model, "Go on", 400),
  idle: async (model) => await post("/tokenize", { model, content: "idle" }),
  unload: async (model) => await post(`/api/models/${model}/unload`, {}),
};

const random = new Random(options.seed);
const findings = new Findings("kills", options);
const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-kills-"));
const files = new Map(
  MODELS.map((model) => [model, writeModel(folder, model, tinyLlama({ context: 2048 }))] as const),
);
const free = [...MODELS];
const recoveries: number[] = [];
const watched = await WatchedDaemon.start(findings, {
  env: {
    SERVICE_ENGINE_STALL_TIMEOUT: `${STALL_SECONDS}s`,
    SERVICE_ENGINE_LOAD_TIMEOUT: `${LOAD_SECONDS}s`,
  },
});
for (const [alias, file] of files) await post("/api/models/load", { alias, path: file });
await atOnce(MODELS.length, findings, async (input) => {
  const model = free.shift() ?? "";
  await kill(input, model);
  free.push(model);
});
const figures = await watched.stop();
await lookForLeftovers();
rmSync(folder, { recursive: true });
findings.finish({
  ...figures,
  "next answer after a kill, median (ms)": Math.round(median(recoveries)),
  "next answer after a kill, slowest (ms)": Math.round(Math.max(0, ...recoveries)),
});

async function kill(input: number, model: string): Promise<void> {
  const phase = random.pick(PHASES);
  const signal = random.pick(SIGNALS);
  const target = random.pick(TARGETS);
  const delay = random.int(0, LATEST_MS);
  const what = `${input}: ${signal} to the ${target} ${delay} ms into ${phase}`;
  if (phase === "load") await post(`/api/models/${model}/unload`, {});
  const running = PHASE_REQUESTS[phase](model);
  await sleep(delay);
  const victims = engineProcesses(files.get(model) ?? "")[target];
  const killedAt = performance.now();
  for (const pid of victims) send(pid, signal);
  findings.count(victims.length > 0 ? `kills by ${signal}` : "no engine to kill at that moment");
  if (victims.length > 0) findings.count(`kills in ${phase}`);
  check(what, await running);
  const problem = await answerOf(what, model);
  const tookMs = performance.now() - killedAt;
  if (problem !== undefined) findings.add("the next request failed", `${what}: ${problem}`);
  else if (tookMs > LONGEST_RECOVERY_MS)
    findings.add("the next answer took long", `${what}: ${Math.round(tookMs)} ms`);
  if (victims.length > 0) recoveries.push(tookMs);
}

/** Undefined if it was answered, otherwise the error. A model that failed often is suspended for a while. */
async function answerOf(what: string, model: string): Promise<string | undefined> {
  const deadline = performance.now() + LONGEST_RECOVERY_MS;
  for (;;) {
    const { status, text } = await generate(model, "Hello", 2);
    if (status === 200) return undefined;
    check(what, { status, text });
    if (performance.now() > deadline) return text;
    await sleep(Number(HELD_BACK.exec(text)?.[1] ?? 0.1) * 1000);
  }
}

function check(what: string, { status, text }: Answer): void {
  if (status === 200) return;
  if (status === 0) return findings.add("a request got no answer", `${what}: ${text}`);
  const parsed = ERROR.safeParse(JSON.parse(text));
  if (!parsed.success) return findings.add("an error without its shape", `${what}: ${text}`);
  const { code } = parsed.data.error;
  findings.count(`answers ${status} ${code}`);
  if (!EXPECTED.has(code)) findings.add("an unclear error", `${what}: ${text}`);
}

async function generate(model: string, prompt: string, maxTokens: number): Promise<Answer> {
  return await post("/api/generate", { model, prompt, max_tokens: maxTokens, stream: false });
}

async function post(route: string, body: object): Promise<Answer> {
  try {
    const response = await postJson(watched.url + route, body, AbortSignal.timeout(2 * LONGEST_RECOVERY_MS));
    return { status: response.status, text: await response.text() };
  } catch (error) {
    return { status: 0, text: String(error) };
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    findings.count("engines that had ended by themselves");
  }
}

/** The daemon has ended: so must have its engines, also those that were stopped. */
async function lookForLeftovers(): Promise<void> {
  const deadline = performance.now() + LONGEST_END_MS;
  for (const [model, file] of files) {
    let left = processesOf(file);
    while (left.length > 0 && performance.now() < deadline) {
      await sleep(100);
      left = processesOf(file);
    }
    for (const pid of left) {
      findings.add("an engine was left over", `${model}: process ${pid}`);
      send(pid, "SIGKILL");
    }
  }
}

function processesOf(file: string): number[] {
  const { engine, sandbox } = engineProcesses(file);
  return [...engine, ...sandbox];
}
