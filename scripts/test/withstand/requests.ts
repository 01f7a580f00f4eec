#!/usr/bin/env node
import { Readable } from "node:stream";
import { Findings } from "./kit/findings.ts";
import { Random } from "./kit/random.ts";
import { readRunOptions } from "./kit/run-options.ts";
import { WatchedDaemon } from "./kit/watched-daemon.ts";
import { type AttackedRoute, attackedRoutes, pathOf } from "./requests/attacked-routes.ts";
import { checkAnswer } from "./requests/check-answer.ts";
import { headOf, HOSTILE_BODIES, type HostileBody } from "./requests/hostile-bodies.ts";
import { LoopWatch } from "./requests/loop-watch.ts";
import { mutatedBody } from "./requests/mutate.ts";
import { memoryOf, resetPeakMemory } from "./requests/peak-memory.ts";
import { type Request, send } from "./requests/send.ts";
import { talkOverWebSocket } from "./requests/talk-over-websocket.ts";
import { validValue } from "./requests/valid-value.ts";
import { VICTIM, makeVictim } from "./requests/victim.ts";

const options = readRunOptions(
  `
Sends a daemon requests that nobody would mean: bodies made from the routes' own schemas and then damaged, cut, slow,
of wrong types, and large ones of the worst shapes. Each must be answered well, and the daemon must go on.

  node scripts/test/withstand/requests.ts [options]

The last third of the time goes to the large bodies, one at a time, of which the memory they took and the longest
wait of /health are printed.`,
  { seconds: 60 },
);

/** Requests at once. */
const WORKERS = 4;
/** Share of the requests that have small bodies. */
const SMALL_SHARE = 0.66;
/** For the answer to a large body: far longer than it takes. */
const DEADLINE_MS = 120_000;
/** The daemon's own limit of a body. */
const BODY_LIMIT = 32 * 1024 * 1024;
/** A body may take a multiple of its size plus a constant, which covers garbage that has not been collected yet. */
const MAX_TIMES = 4;
const FLOOR = 64 * 1024 * 1024;
/** Ways to send a body that is declared as JSON but is not. */
const HEADERS: readonly Record<string, string>[] = [
  { "content-type": "text/plain" },
  { "content-type": "application/json; charset=latin1" },
  { "content-type": "application/json", "content-encoding": "gzip" },
  { "content-type": "application/json", "transfer-encoding": "chunked" },
  { "content-type": "", origin: "https://evil.example" },
  { "content-type": "application/json", "x-request-id": "x".repeat(4000) },
];

const findings = new Findings("requests", options);
const random = new Random(options.seed);
const watched = await WatchedDaemon.start(findings);
const routes = attackedRoutes();
await makeVictim(watched.url);
const startedAt = performance.now();
const elapsed = (): number => (performance.now() - startedAt) / 1000;

await Promise.all(Array.from({ length: WORKERS }, smallBodies));
const figures = await largeBodies(options.seconds * (1 - SMALL_SHARE));
findings.finish({ ...(await watched.stop()), ...figures });

async function smallBodies(): Promise<void> {
  while (findings.goesOn && elapsed() < options.seconds * SMALL_SHARE)
    await attack(findings.begin(), random.fork());
}

async function attack(input: number, own: Random): Promise<void> {
  if (input % 200 === 199) await makeVictim(watched.url);
  if (own.chance(0.05)) {
    await talkOverWebSocket(watched.url, own, findings);
    return;
  }
  const target = own.pick(routes);
  const request = requestOf(target, own);
  const answer = await send(watched.url, request);
  findings.count(typeof answer === "string" ? answer : `${Math.floor(answer.status / 100)}xx`);
  if (typeof answer !== "string")
    checkAnswer(target, answer, `#${input} ${request.text.slice(0, 300)}`, findings);
}

function requestOf(
  { route, headers: always }: AttackedRoute,
  own: Random,
): Request & { readonly text: string } {
  const name = own.pick([VICTIM, VICTIM, "no-such-model", "..%2f", "%00", "x".repeat(600), "hf:a/b", "é"]);
  const path = own.chance(0.9)
    ? pathOf(route, name)
    : `${pathOf(route, name)}?${"limit=".repeat(own.int(1, 300))}`;
  if (!route.body) return { method: route.method, path, headers: always, text: "" };
  const valid = withVictim(validValue(route.body, own));
  const body = mutatedBody(valid, own);
  const headers = own.chance(0.9) ? { "content-type": "application/json" } : own.pick(HEADERS);
  const cutAfter = own.chance(0.05) ? own.int(0, body.length) : undefined;
  return {
    method: route.method,
    path,
    headers: { ...headers, ...always },
    body,
    text: body,
    ...(cutAfter !== undefined && { cutAfter }),
  };
}

/** Attacks the model that is there for it, and asks for short answers. */
function withVictim(body: unknown): unknown {
  if (typeof body !== "object" || body === null) return body;
  const copy: Record<string, unknown> = { ...body };
  for (const name of ["model", "alias", "source", "from", "name"]) if (name in copy) copy[name] = VICTIM;
  for (const name of ["max_tokens", "max_completion_tokens", "max_output_tokens"])
    if (name in copy) copy[name] = 2;
  return copy;
}

async function largeBodies(seconds: number): Promise<Record<string, string | number>> {
  const until = performance.now() + seconds * 1000;
  const withBodies = routes.filter(({ route }) => fieldsOf(route).length > 0);
  const worst = { stall: 0, stallAt: "", times: 0, timesAt: "" };
  let count = 0;
  let isQuiet = true;
  const loop = await LoopWatch.start(watched.url);
  while (performance.now() < until) {
    const target = random.pick(withBodies);
    const shape = random.pick(HOSTILE_BODIES);
    const valid = Object(withVictim(validValue(target.route.body!, random)));
    const field = random.pick(fieldsOf(target.route));
    const { pid } = watched.daemon;
    // What is still done for a body that nobody waited for is not the memory of the next one.
    const canMeasure = resetPeakMemory(pid) && isQuiet;
    const before = canMeasure ? memoryOf(pid).now : 0;
    await loop.reset();
    const sent = await sendLarge(target, shape, headOf(valid, field));
    isQuiet = sent !== "left";
    const stall = await loop.reset();
    const grown = canMeasure ? memoryOf(pid).peak - before : 0;
    const what = `${target.route.path} ${field}: ${shape.name}`;
    console.log(
      `  ${what}: ${sent}, longest wait of /health ${Math.round(stall)} ms, memory ${Math.round(grown / 2 ** 20)} MiB`,
    );
    if (grown > MAX_TIMES * BODY_LIMIT + FLOOR) findings.add("a body took too much memory", what);
    if (stall > worst.stall) Object.assign(worst, { stall, stallAt: what });
    if (grown / BODY_LIMIT > worst.times) Object.assign(worst, { times: grown / BODY_LIMIT, timesAt: what });
    count += 1;
  }
  await loop.stop();
  return {
    "large bodies": count,
    "longest wait of /health with a large body": `${Math.round(worst.stall)} ms (${worst.stallAt})`,
    "most memory of a large body": `${worst.times.toFixed(1)} times its size (${worst.timesAt})`,
  };
}

/** Names of what its body may have; none if that is not an object. */
function fieldsOf({ body }: AttackedRoute["route"]): string[] {
  return Object.keys(Object(body && "shape" in body ? body.shape : {}));
}

async function sendLarge(target: AttackedRoute, shape: HostileBody, head: string): Promise<string> {
  const body = Readable.from(shape.pieces(head, BODY_LIMIT - 4096));
  const headers = {
    "content-type": "application/json",
    "transfer-encoding": "chunked",
    ...target.headers,
  };
  const { method } = target.route;
  const answer = await send(watched.url, {
    method,
    path: pathOf(target.route, VICTIM),
    headers,
    body,
    deadlineMs: DEADLINE_MS,
  });
  if (typeof answer === "string") return answer;
  checkAnswer(target, answer, shape.name, findings);
  return String(answer.status);
}
