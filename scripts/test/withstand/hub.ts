#!/usr/bin/env node
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startFixtureHub } from "../../../test/support/fixture-hub.ts";
import { atOnce, Findings } from "./kit/findings.ts";
import { randomFault } from "./kit/hub-faults.ts";
import { checkCache, makeRepos } from "./kit/hub-repos.ts";
import { PullClient } from "./kit/pull-client.ts";
import { Random } from "./kit/random.ts";
import { readRunOptions } from "./kit/run-options.ts";
import { WatchedDaemon } from "./kit/watched-daemon.ts";

const options = readRunOptions(
  `
Pulls models from a hub that cuts, lies, stalls, redirects, drips and sends nonsense, many at a time, joins and leaves
pulls and deletes what has come, and kills a second daemon on the same cache in the middle of its pulls. What is
acknowledged must have the right SHA-256, every failure must be a sentence with a code, /health must answer, and no file
may be left over.

  node scripts/test/withstand/hub.ts [options]`,
  { seconds: 60 },
);

const AT_ONCE = 6;
const REPOS = 12;
/** Share of the hub's responses that are faulty. */
const FAULTY = 0.3;
/** Between two kills of the second daemon. */
const LIFE_MS = [1000, 5000] as const;

const random = new Random(options.seed);
const findings = new Findings("hub", options);
const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-hub-"));
const cacheDir = path.join(folder, "cache");
const repos = makeRepos(random.fork(), REPOS);
const faults = random.fork();
let isWell = false;
const hub = await startFixtureHub({
  repos: repos.content,
  pageSize: 2,
  plan: ({ path: asked }) => (isWell || !faults.chance(FAULTY) ? undefined : randomFault(faults, hub, asked)),
});
const args = ["--models-load", ""];
const env = { HUB_URL: hub.url };
const watched = await WatchedDaemon.start(findings, { cacheDir, env });
const killed = new PullClient(findings, { cacheDir, env, args });
await killed.start();
const client = new PullClient(findings, { url: watched.url });

const ended = new AbortController();
const storm = killAgainAndAgain(ended.signal);
await atOnce(AT_ONCE, findings, async () => {
  const spec = random.pick(repos.specs);
  if (random.chance(0.15)) await client.remove(spec);
  else await random.pick([client, client, killed]).pull(spec, leaveAfterMs());
});
ended.abort();
await storm;
await killed.kill();

// With the hub well again every pull must succeed, go on from what is there, and leave nothing beside it.
isWell = true;
await killed.start();
for (const spec of repos.specs) {
  const result = await client.pull(spec, undefined);
  if (result !== "pulled") findings.add("a pull fails though the hub is well", `${spec}: ${result}`);
}
await killed.stop();
await checkCache(cacheDir, repos, findings);
const figures = await watched.stop();
await hub.close();
rmSync(folder, { recursive: true });
findings.finish({ "requests to the hub": hub.requests.length, ...figures });

/** Some clients do not wait for the end. */
function leaveAfterMs(): number | undefined {
  return random.chance(0.2) ? random.int(1, 300) : undefined;
}

async function killAgainAndAgain(signal: AbortSignal): Promise<void> {
  const lives = random.fork();
  while (!signal.aborted) {
    await sleep(lives.int(...LIFE_MS), undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    await killed.kill();
    await killed.start();
    findings.count("kills in the middle of pulls");
  }
}
