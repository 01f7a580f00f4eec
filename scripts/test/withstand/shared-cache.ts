#!/usr/bin/env node
import { mkdtempSync, rmSync } from "node:fs";
import { mkdir, readdir } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { writeModel } from "../../../test/support/engine-fixture.ts";
import { postJson } from "../../../test/support/post-json.ts";
import { startDaemon, type TestDaemon } from "../../../test/support/start-daemon.ts";
import { tinyLlama } from "../../../test/support/tiny-models.ts";
import { atOnce, Findings } from "./kit/findings.ts";
import { Random } from "./kit/random.ts";
import { readRunOptions } from "./kit/run-options.ts";

const options = readRunOptions(
  `
Lets two daemons share one cache folder while models are made, copied, loaded by path, deleted and chosen on both at the same time, and
kills one of them again and again. No model that was acknowledged may be missing, none that was deleted may be there,
and each daemon must see at once what the other was told.

  node scripts/test/withstand/shared-cache.ts [options]`,
  { seconds: 60 },
);

const AT_ONCE = 8;
/** Between two kills. */
const LIFE_MS = [500, 6000] as const;
/** Time for the next change after a kill, on a machine that does other things as well; the daemon that is left answers it. */
const LONGEST_CHANGE_MS = 30_000;
/** Few, as each starts an engine. */
const PATH_CHANCE = 0.005;
const BASE = "daybreak-mini";
const ERROR = z.object({ error: z.object({ code: z.string(), message: z.string() }) });
const LIST = z.object({ models: z.array(z.object({ alias: z.string() })) });
const STATUS = z.object({ default_model: z.string() });

/** State of a model as far as it is known: a request that a kill has cut may or may not have taken effect. */
type Fate = "there" | "gone" | "unknown";

interface Outcome {
  readonly daemon: TestDaemon;
  readonly isDone: boolean;
  readonly isUnknown: boolean;
}

const random = new Random(options.seed);
const findings = new Findings("shared-cache", options);
const cacheDir = path.join(mkdtempSync(path.join(os.tmpdir(), "daybreak-shared-")), "cache");
const files = path.join(path.dirname(cacheDir), "files");
const fates = new Map<string, Fate>();
/** Models that a request is at. */
const busy = new Set<string>();
/** Killed and not yet started again. */
let down: TestDaemon | undefined;
let slowestMs = 0;

await mkdir(cacheDir);
await mkdir(files);
const daemons = await Promise.all([start(), start()]);
const ended = new AbortController();
const storm = killAgainAndAgain(ended.signal);
await atOnce(AT_ONCE, findings, change);
ended.abort();
await storm;
await compareLists();
await chooseAndLook();
await Promise.all(daemons.map(async (daemon) => await daemon.stop()));
await lookForLeftovers();
rmSync(path.dirname(cacheDir), { recursive: true });
findings.finish({
  "models at the end": [...fates.values()].filter((fate) => fate === "there").length,
  "slowest change (ms)": Math.round(slowestMs),
});

async function start(): Promise<TestDaemon> {
  return await startDaemon({ cacheDir, args: ["--models-load", ""] });
}

async function change(input: number): Promise<void> {
  const known = [...fates]
    .filter(([name, fate]) => fate === "there" && !busy.has(name))
    .map(([name]) => name);
  const kind = random.fraction();
  if (known.length > 0 && kind < 0.2) return await remove(random.pick(known));
  const name = `model-${input}`;
  if (kind > 1 - PATH_CHANCE) return await loadFile(name);
  if (known.length > 0 && kind < 0.4) {
    return await make(name, "/api/models/copy", { source: random.pick(known), destination: name });
  }
  await make(name, "/api/models/create", { alias: name, modelfile: `FROM ${BASE}\nSYSTEM ${name}\n` });
}

/** Registers a file by loading it. Unloaded again, as a model that runs is shown also when another has deleted it. */
async function loadFile(name: string): Promise<void> {
  busy.add(name);
  const { isDone, isUnknown, daemon } = await send(
    "POST",
    "/api/models/load",
    { alias: name, path: writeModel(files, name, tinyLlama()) },
    [],
  );
  fates.set(name, isDone ? "there" : "unknown");
  if (isDone)
    await fetch(`${daemon.url}/api/models/${name}/unload`, { method: "POST" }).catch(() => undefined);
  busy.delete(name);
  if (!isUnknown) await look(name, 200);
}

async function make(name: string, route: string, body: object): Promise<void> {
  busy.add(name);
  const { isDone, isUnknown } = await send("POST", route, body, ["model_not_found"]);
  if (isUnknown) fates.set(name, "unknown");
  else if (isDone) fates.set(name, "there");
  busy.delete(name);
  if (isDone) await look(name, 200);
}

async function remove(name: string): Promise<void> {
  busy.add(name);
  const { isDone, isUnknown } = await send("DELETE", `/api/models/${name}`, undefined, []);
  if (isUnknown) fates.set(name, "unknown");
  else if (isDone) fates.set(name, "gone");
  busy.delete(name);
  if (isDone) await look(name, 404);
}

/** Both daemons must know at once. */
async function look(name: string, wanted: number): Promise<void> {
  // Another request may have been at it meanwhile, and a kill may have cut that one.
  const isKnown = (): boolean => !busy.has(name) && fates.get(name) === (wanted === 404 ? "gone" : "there");
  for (const daemon of daemons) {
    if (!isKnown()) return;
    const status = await statusOf(daemon, name);
    if (status !== undefined && status !== wanted && isKnown())
      findings.add("a daemon does not see what was done", `${name}: ${status} instead of ${wanted}`);
  }
}

async function statusOf({ url }: TestDaemon, name: string): Promise<number | undefined> {
  try {
    const answer = await fetch(`${url}/api/models/${name}`);
    await answer.body?.cancel();
    return answer.status;
  } catch {
    // It has just been killed.
    return undefined;
  }
}

async function send(
  method: string,
  route: string,
  body: object | undefined,
  allowed: readonly string[],
): Promise<Outcome> {
  const daemon = random.pick(daemons.filter((candidate) => candidate !== down));
  const startedAt = performance.now();
  let status: number;
  let text: string;
  try {
    const answer = await fetch(daemon.url + route, {
      method,
      headers: { "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
    status = answer.status;
    text = await answer.text();
  } catch {
    findings.count("requests cut by a kill");
    return { daemon, isDone: false, isUnknown: true };
  }
  const tookMs = performance.now() - startedAt;
  if (!route.endsWith("/load")) slowestMs = Math.max(slowestMs, tookMs);
  if (tookMs > LONGEST_CHANGE_MS && !route.endsWith("/load"))
    findings.add("a change took long", `${method} ${route}: ${Math.round(tookMs)} ms`);
  findings.count(`${method} ${method === "DELETE" ? "/api/models/…" : route}: ${status}`);
  if (status === 200) return { daemon, isDone: true, isUnknown: false };
  const { error } = ERROR.parse(JSON.parse(text));
  if (!allowed.includes(error.code)) findings.add("a change failed", `${method} ${route}: ${text}`);
  return { daemon, isDone: false, isUnknown: false };
}

async function killAgainAndAgain(signal: AbortSignal): Promise<void> {
  const lives = random.fork();
  for (let round = 0; !signal.aborted; round++) {
    await sleep(lives.int(...LIFE_MS), undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    const index = round % daemons.length;
    const [killed] = daemons.slice(index);
    if (killed === undefined) return;
    killed.kill("SIGKILL");
    down = killed;
    await killed.exited;
    await killed.stop();
    daemons[index] = await start();
    down = undefined;
    findings.count("kills");
  }
}

async function compareLists(): Promise<void> {
  for (const { url } of daemons) {
    const { models } = LIST.parse(await (await fetch(`${url}/api/models`)).json());
    const listed = new Set(models.map(({ alias }) => alias));
    for (const [name, fate] of fates) {
      if (fate === "there" && !listed.has(name)) findings.add("an acknowledged model is lost", name);
      if (fate === "gone" && listed.has(name)) findings.add("a deleted model is back", name);
    }
  }
}

/** Sets a default model through one daemon and expects the other to report it at its next request. */
async function chooseAndLook(): Promise<void> {
  const known = [...fates].filter(([, fate]) => fate === "there").map(([name]) => name);
  for (const name of known.slice(0, 4)) {
    const [one, other] = random.chance(0.5) ? daemons : daemons.toReversed();
    if (one === undefined || other === undefined) return;
    const answer = await postJson(`${one.url}/api/models/load`, { alias: name, set_default: true });
    if (!answer.ok) findings.add("a change failed", `choosing ${name}: ${await answer.text()}`);
    const status = STATUS.parse(await (await fetch(`${other.url}/api/system/status`)).json());
    if (status.default_model !== name)
      findings.add(
        "a daemon does not see what was done",
        `default ${status.default_model} instead of ${name}`,
      );
  }
}

async function lookForLeftovers(): Promise<void> {
  for (const name of await readdir(cacheDir, { recursive: true })) {
    if (/\.next$|\.owner$|\.pull$|\.incomplete$|\.damaged/.test(name))
      findings.add("a file was left over", name);
  }
}
