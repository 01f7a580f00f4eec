#!/usr/bin/env node
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { writeModel } from "../../../test/support/engine-fixture.ts";
import { tinyLlama } from "../../../test/support/tiny-models.ts";
import { atOnce, Findings } from "./kit/findings.ts";
import { Random } from "./kit/random.ts";
import { ResourceWatch } from "./kit/resource-watch.ts";
import { readRunOptions } from "./kit/run-options.ts";
import { soakDeeds } from "./kit/soak-requests.ts";
import { WatchedDaemon } from "./kit/watched-daemon.ts";

const options = readRunOptions(
  `
Uses a daemon as many clients would, on all its routes and with the client libraries of others, at their pace and for
as long as is asked: memory, heap, descriptors, sockets, timers, engines and files must not grow without end. Every
request must succeed, and what is wrong be refused.

  node scripts/test/withstand/soak.ts [options]`,
  { seconds: 60 },
);

const CLIENTS = 6;
/** Users read what they get. */
const LONGEST_PAUSE_MS = 400;
/** One request of a user whom nothing disturbs takes about a second. */
const LONGEST_DEED_MS = 60_000;

const random = new Random(options.seed);
const findings = new Findings("soak", options);
const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-soak-"));
const temporary = path.join(folder, "of-the-daemon");
const cacheDir = path.join(temporary, "cache");
mkdirSync(cacheDir, { recursive: true });
const file = writeModel(folder, "tiny", tinyLlama());
const watched = await WatchedDaemon.start(findings, {
  cacheDir,
  args: ["--models-load", "daybreak-mini,daybreak-mini-embed"],
  env: ResourceWatch.environment(temporary),
});
const { daemon } = watched;
const resources = new ResourceWatch(daemon.pid, temporary);
const deeds = soakDeeds({ url: daemon.url, socket: daemon.socket, file });
const drawn = deeds.flatMap((deed) => Array.from({ length: deed[1] }, () => deed));

await atOnce(CLIENTS, findings, async (number) => {
  const [name, , deed] = random.pick(drawn);
  const startedAt = performance.now();
  try {
    await deed(random.fork(), number);
    findings.count(`${name}: done`);
  } catch (error) {
    findings.add("a request failed", `${name}: ${String(error)}`);
  }
  const tookMs = performance.now() - startedAt;
  if (tookMs > LONGEST_DEED_MS) findings.add("a request took long", `${name}: ${Math.round(tookMs)} ms`);
  await sleep(random.int(0, LONGEST_PAUSE_MS));
});

const leaks = await resources.stop(findings);
const figures = await watched.stop();
rmSync(folder, { recursive: true });
findings.finish({ ...figures, ...leaks });
