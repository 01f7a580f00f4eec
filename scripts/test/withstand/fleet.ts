#!/usr/bin/env node
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "@nats-io/transport-node";
import { readFrame } from "../../../src/fleet/wire-format.ts";
import { writeModel } from "../../../test/support/engine-fixture.ts";
import { startNats } from "../../../test/support/nats-server.ts";
import { startDaemon } from "../../../test/support/start-daemon.ts";
import { ask, FLEET_MODEL, fleetOf } from "../../../test/support/test-fleet.ts";
import { CHATML_TEMPLATE, CHATML_WORDS, tinyLlama } from "../../../test/support/tiny-models.ts";
import { forgedCard, hostileMessage, type Message } from "./fleet/hostile-messages.ts";
import { Findings } from "./kit/findings.ts";
import { Random } from "./kit/random.ts";
import { ResourceWatch } from "./kit/resource-watch.ts";
import { readRunOptions } from "./kit/run-options.ts";
import { WatchedDaemon } from "./kit/watched-daemon.ts";

const options = readRunOptions(
  `
Sends messages of every kind to all subjects of a fleet, as anybody can who may use its NATS server: random bytes, forged beats
and cards of machines that are there or not, offers and requests, answers, questions for files, records of responses and batches,
and what the machines have sent themselves, damaged and once more. The machines must live, answer /health, find each other and
answer each other's requests again when it is over, and keep nothing of it in memory.

  node scripts/test/withstand/fleet.ts [options]

Needs nats-server.`,
  { seconds: 30 },
);

const PREFIX = "daybreak";
/** Messages of a round, in bursts; after each round an honest request must succeed. */
const [BURSTS, BURST] = [8, 40];
const MAX_HEARD = 500;
/** A request that is disturbed may fail, but must end. */
const LONGEST_MS = 60_000;
const MAX_HEAP_GROWTH_MB = 40;

const random = new Random(options.seed);
const findings = new Findings("fleet", options);
const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-fleet-attack-"));
const file = { embedding: 64, blocks: 2, context: 512, words: CHATML_WORDS, chatTemplate: CHATML_TEMPLATE };
writeModel(folder, FLEET_MODEL, tinyLlama(file));
const nats = await startNats({ jetStream: true });
const env = { SERVICE_FLEET_NATS: nats.url, SERVICE_ENGINE_THREADS: "1" };
const [watched, entrance] = await Promise.all([
  WatchedDaemon.start(findings, {
    env: {
      ...env,
      ...ResourceWatch.environment(folder),
      SERVICE_FLEET_NAME: "victim",
      SERVICE_MODELS_DIRS: folder,
      SERVICE_MODELS_LOAD: `daybreak-mini,${FLEET_MODEL}`,
    },
  }),
  startDaemon({ env: { ...env, SERVICE_FLEET_NAME: "desk" } }),
]);
const machines = await machinesThere();
const resources = new ResourceWatch(watched.daemon.pid, folder);
const expected = await ask(entrance, "hello");
if (expected.status !== 200) throw new Error(`the fleet does not work: ${JSON.stringify(expected.body)}`);
await createRecords();

const attacker = await connect({ servers: nats.url });
const heard: Message[] = [];
attacker.subscribe(`${PREFIX}.>`, {
  callback: (_error, { subject, data }) => {
    if (subject.includes(".inbox.")) return;
    const receiver = /\.answer\.(\w+)$/.exec(subject)?.[1];
    if (receiver !== undefined && !machines.includes(receiver))
      findings.count(`frames to forged entrances: ${kindOf(data)}`);
    // The newest, and what is stored, which is rare.
    if (heard.length >= MAX_HEARD) heard.splice(random.int(0, MAX_HEARD - 1), 1);
    heard.push({ subject, data: new Uint8Array(data) });
  },
});
const model = await modelOfVictim();
const known = { prefix: PREFIX, machines, model, heard };
// The attacker invents a machine: it answers every request for member info.
attacker.subscribe(`${PREFIX}.card.*`, {
  callback: (_error, message) => {
    const id = message.subject.split(".").at(-1) ?? "";
    if (!machines.includes(id) && message.reply) message.respond(forgedCard(known, id, random));
  },
});

const heapBefore = resources.heap;
while (findings.goesOn) {
  const round = findings.begin();
  const disturbed = honest().then(({ status }) => findings.count(`disturbed requests: ${status}`));
  for (let burst = 0; burst < BURSTS; burst += 1) {
    for (let message = 0; message < BURST; message += 1) {
      const { subject, data } = hostileMessage(known, random);
      const wantsReply = random.chance(0.3);
      attacker.publish(subject, data, wantsReply ? { reply: replyTo() } : {});
      findings.count("messages");
    }
    await attacker.flush();
    await sleep(random.int(0, 50));
  }
  await disturbed;
  await recovered(round);
}
await listsAnswer();
// Until what was forged is forgotten, too: a machine is missed after two seconds, an entrance after three.
const leaks = await resources.stop(findings);
const heapAfter = resources.heap;
if (!(heapAfter - heapBefore <= MAX_HEAP_GROWTH_MB))
  findings.add("what was sent is kept", `the heap has grown from ${heapBefore} to ${heapAfter} MB`);
await attacker.close();
const figures = await watched.stop();
await entrance.stop();
await nats.stop();
rmSync(folder, { recursive: true });
findings.finish({
  ...figures,
  ...leaks,
  "daemon heap, before and after (MB)": [heapBefore, heapAfter].map(Math.round).join(" and "),
});

/** The ids of both machines, once each knows the other and the model is loaded. */
async function machinesThere(): Promise<string[]> {
  const deadline = performance.now() + LONGEST_MS;
  for (;;) {
    const seen = [await fleetOf(entrance), await fleetOf(watched.daemon)].map(({ machines: each }) => each);
    const victim = seen[0]?.find(({ name }) => name === "victim");
    const isLoaded = victim?.models.some(({ alias, loaded }) => alias === FLEET_MODEL && loaded);
    const other = seen[1]?.find(({ name }) => name === "desk");
    if (victim && isLoaded && other) return [victim.id, other.id];
    if (performance.now() > deadline) throw new Error(`the machines do not see each other: ${names(seen)}`);
    await sleep(100);
  }
}

function names(seen: readonly (readonly { readonly name: string }[])[]): string {
  return seen.map((each) => each.map(({ name }) => name).join(", ")).join("; ");
}

async function modelOfVictim() {
  const { machines: seen } = await fleetOf(entrance);
  const found = seen.flatMap(({ models }) => models).find(({ alias }) => alias === FLEET_MODEL);
  if (!found) throw new Error("the model is gone");
  return { alias: FLEET_MODEL, files: found.files, settings: found.settings };
}

/** Stores a response, a file and a batch under subjects that the attacker can see. */
async function createRecords(): Promise<void> {
  const json = { "content-type": "application/json" };
  const post = async (route: string, body: string | FormData): Promise<string> => {
    const headers = typeof body === "string" ? json : {};
    const answer = await fetch(`${entrance.url}${route}`, { method: "POST", headers, body });
    const { id }: { id: string } = JSON.parse(await answer.text());
    return id;
  };
  const response = { model: FLEET_MODEL, input: "hello", max_output_tokens: 2 };
  await post("/v1/responses", JSON.stringify(response));
  const line = { custom_id: "a", method: "POST", url: "/v1/completions" };
  const body = { model: FLEET_MODEL, prompt: "a", max_tokens: 2 };
  const form = new FormData();
  form.set("purpose", "batch");
  form.set("file", new Blob([`${JSON.stringify({ ...line, body })}\n`]), "requests.jsonl");
  const batch = {
    endpoint: line.url,
    completion_window: "24h",
    input_file_id: await post("/v1/files", form),
  };
  await post("/v1/batches", JSON.stringify(batch));
}

/** A request through the other machine. Never rejects. */
async function honest(): Promise<{ status: number; text: string }> {
  try {
    const answer = await ask(entrance, "hello", {}, AbortSignal.timeout(LONGEST_MS));
    if (answer.status === 200 || hasError(answer.body)) return answer;
    findings.add("an error without its shape", JSON.stringify(answer));
  } catch (error) {
    findings.add("a request got no answer", String(error));
  }
  return { status: 0, text: "" };
}

function hasError(body: unknown): boolean {
  return typeof body === "object" && body !== null && "error" in body;
}

/** When the messages have stopped, the machines find each other again, and one answers for the other. */
async function recovered(round: number): Promise<void> {
  const deadline = performance.now() + LONGEST_MS;
  for (;;) {
    await machinesThere().catch((error: unknown) => findings.add("a machine is not found", String(error)));
    const answer = await honest();
    if (answer.status === 200 && answer.text === expected.text) return;
    if (performance.now() > deadline)
      return findings.add("an honest request fails", `round ${round}: ${JSON.stringify(answer)}`);
    await sleep(200);
  }
}

/** Lists with damaged records are answered, or refused with a reason. */
async function listsAnswer(): Promise<void> {
  for (const route of ["/v1/files", "/v1/batches", "/v1/models", "/api/fleet"]) {
    const answer = await fetch(entrance.url + route, { signal: AbortSignal.timeout(LONGEST_MS) }).catch(
      String,
    );
    const reported = typeof answer === "string" ? answer : `${answer.status} ${await answer.text()}`;
    if (!/^(200|503) \{/.test(reported))
      findings.add("a list is not answered", `${route}: ${reported.slice(0, 500)}`);
    else findings.count(`lists: ${reported.slice(0, 3)}`);
  }
}

/** Returns how a call was received: refused, or started. */
function kindOf(data: Uint8Array): string {
  const frame = readFrame(data);
  const reported = frame && Buffer.from(frame.payload).toString("latin1");
  return /"type":"(\w+)"/.exec(reported ?? "")?.[1] ?? frame?.kind ?? "none";
}

/** Where the answers to a message are to go: also to those who have not asked. */
function replyTo(): string {
  const id = random.pick(machines);
  return `${PREFIX}.${random.pick(["inbox.attacker", "presence", "batchnews", `call.${id}`, `answer.${id}`])}`;
}
