#!/usr/bin/env node
import { rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { startFixtureHub } from "../../../test/support/fixture-hub.ts";
import { writeGguf } from "../../../test/support/gguf-writer.ts";
import { tinyLlama } from "../../../test/support/tiny-models.ts";
import { FAULT_KINDS, type Answer, type Fault, FaultyDaemon } from "./kit/faulty-daemon.ts";
import { Findings } from "./kit/findings.ts";
import { Random } from "./kit/random.ts";
import { readRunOptions } from "./kit/run-options.ts";

const options = readRunOptions(
  `
Lets the system refuse a daemon what it asks for (descriptors, processes, memory, room on the disk), at any of its calls,
and holds that the daemon lives, says clearly what is missing, and answers the next request.

  node scripts/test/withstand/faults.ts [options]`,
  { seconds: 60 },
);

const ALWAYS = ["EMFILE", "ENFILE", "ENOMEM"] as const;
/** Errors that the system returns when a resource is exhausted. */
const ERRORS: Readonly<Record<Fault["kind"], readonly Fault["error"][]>> = {
  spawn: ["EMFILE", "ENOMEM", "EAGAIN"],
  open: ALWAYS,
  stat: ["ENOMEM"],
  save: [...ALWAYS, "ENOSPC", "EROFS"],
  listen: ALWAYS,
  accept: ALWAYS,
  connect: ["EAGAIN", "EMFILE"],
  send: ["ENOMEM", "EPIPE", "EAGAIN"],
  write: ["ENOMEM", "EPIPE"],
};

const random = new Random(options.seed);
const findings = new Findings("faults", options);
const hub = await startFixtureHub();
const model = path.join(os.tmpdir(), `daybreak-faults-${process.pid}.gguf`);
writeGguf(model, tinyLlama());

type Ask = (method: string, route: string, body?: unknown) => Promise<Answer>;

/** Each can be asked again and again; the first that fails is the answer. */
const OPERATIONS: Readonly<Record<string, (ask: Ask) => Promise<Answer>>> = {
  health: (ask) => ask("GET", "/health"),
  list: (ask) => ask("GET", "/api/models"),
  status: (ask) => ask("GET", "/api/system/status"),
  generate: (ask) =>
    ask("POST", "/api/generate", { model: "daybreak-mini", prompt: "Hello", max_tokens: 4, stream: false }),
  stream: (ask) =>
    ask("POST", "/api/generate", { model: "daybreak-mini", prompt: "Hello", max_tokens: 4, stream: true }),
  load: async (ask) => {
    await ask("POST", "/api/models/attacked/unload", {});
    return await ask("POST", "/api/models/load", { alias: "attacked", path: model });
  },
  create: async (ask) => {
    await ask("DELETE", "/api/models/made");
    return await ask("POST", "/api/models/create", { alias: "made", modelfile: "FROM daybreak-mini" });
  },
};

const ERROR = z.object({ error: z.object({ code: z.string(), message: z.string() }) });
/** Codes that would mislead here: the models and files exist and are intact, but could not be read. */
const MISLEADING = new Set(["model_not_found", "model_file_not_found", "invalid_model_file"]);
const HELD_BACK = /will be retried in (\d+) s/;
/** Node's own words for a failed call: "EMFILE: too many open files", "spawn /usr/bin/node EAGAIN". */
const NODE_WORDS = /\bE[A-Z]{3,}: |\b(spawn|connect|listen|write|read|open|scandir) \S* ?E[A-Z]{3,}/;

const daemon = await FaultyDaemon.start({ env: { HUB_URL: hub.url } });
const ask: Ask = async (method, route, body) => await daemon.ask(method, route, body);

/** How many calls of each kind every operation makes. */
async function calls(): Promise<
  { readonly name: string; readonly kind: Fault["kind"]; readonly calls: number }[]
> {
  const found = [];
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    await operation(ask);
    await daemon.disarm();
    await operation(ask);
    const { seen } = await daemon.disarm();
    for (const kind of FAULT_KINDS) if (seen[kind]) found.push({ name, kind, calls: seen[kind] });
  }
  return found;
}

async function attack(input: number): Promise<void> {
  const { name, kind, calls: all } = random.pick(targets);
  const fault: Fault = {
    kind,
    error: random.pick(ERRORS[kind]),
    after: random.int(0, all - 1),
    times: random.pick([1, 1, 2, 5, 100]),
  };
  const operation = OPERATIONS[name]!;
  const what = `${input}: ${name} while ${fault.kind} number ${fault.after + 1} fails with ${fault.error}, ${fault.times} times`;
  await daemon.arm(fault);
  const answer = await operation(ask);
  const { fired } = await daemon.disarm();
  findings.count(fired > 0 ? `${fault.kind} failed` : "operations that needed no such call");
  check(what, fault, answer);
  const health = await ask("GET", "/health");
  if (health.status !== 200) findings.add("/health did not answer", `${what}: ${JSON.stringify(health)}`);
  const again = await unlessHeldBack(operation);
  if (again.status >= 400 || again.status === 0)
    findings.add("the next request failed", `${what}: ${again.status} ${again.body}`);
}

function check(what: string, { kind }: Fault, { status, body }: Answer): void {
  // Where the connection itself fails nothing can be said over it.
  if (status === 0) {
    if (kind === "accept" || kind === "write") return;
    findings.add("a request got no answer", `${what}: ${body}`);
  } else if (status >= 400) {
    const error = readError(body);
    findings.count(`answers ${status} ${error?.code}`);
    if (error === undefined) findings.add("an error without its shape", `${what}: ${body}`);
    else if (error.code === "internal_error") findings.add("an unclear error", `${what}: ${body}`);
    else if (MISLEADING.has(error.code))
      findings.add("an error that says something else", `${what}: ${body}`);
    else if (NODE_WORDS.test(error.message)) findings.add("Node's words in an answer", `${what}: ${body}`);
  }
}

/** The answer, when need be after the time for which a model that failed several times is held back. */
async function unlessHeldBack(operation: (ask: Ask) => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await operation(ask);
    const seconds = HELD_BACK.exec(answer.body)?.[1];
    if (seconds === undefined) return answer;
    await sleep(Number(seconds) * 1000);
  }
}

function readError(body: string): z.infer<typeof ERROR>["error"] | undefined {
  try {
    return ERROR.parse(JSON.parse(body)).error;
  } catch {
    return undefined;
  }
}

const targets = await calls();
try {
  while (findings.goesOn) await attack(findings.begin());
} catch (error) {
  findings.add("the daemon ended", String(error));
}
if (/A fault in the daemon/.test(daemon.daemon.logs()))
  for (const line of daemon.daemon
    .logs()
    .split("\n")
    .filter((text) => text.includes("A fault in the daemon")))
    findings.add("an error that nobody caught", line);
await daemon.stop();
await hub.close();
rmSync(model, { force: true });
findings.finish();
