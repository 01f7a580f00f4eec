#!/usr/bin/env node
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import OpenAI, { toFile } from "openai";
import type { Batch } from "openai/resources/batches";
import { writeModel } from "../../../test/support/engine-fixture.ts";
import { startDaemon, type TestDaemon } from "../../../test/support/start-daemon.ts";
import { tinyLlama } from "../../../test/support/tiny-models.ts";
import { Findings } from "./kit/findings.ts";
import { Random } from "./kit/random.ts";
import { readRunOptions } from "./kit/run-options.ts";

const options = readRunOptions(
  `
Kills a daemon (SIGKILL) at random moments while it works on a batch, and starts it again. When the time is over it may
end its work: each request must have exactly one answer, in the order of the input. The engine is a real one, with a tiny
model of random weights.

  node scripts/test/withstand/batches.ts [options]

--count is the number of requests (default 500); --count 10000 --seconds 600 is the long version.`,
  { seconds: 20 },
);

const ENDPOINT = "/v1/completions";
const REQUESTS = Number.isFinite(options.count) ? options.count : 500;
/** Between a start and the next kill. */
const LIFE_MS = { least: 50, most: 3000 };
/** A batch whose answers do not become more for so long has stopped. */
const STANDSTILL_MS = 60_000;

const random = new Random(options.seed);
// The count is that of the requests, not of the kills.
const findings = new Findings("batches", { ...options, count: Number.POSITIVE_INFINITY });
const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-batches-"));
const model = writeModel(folder, "tiny", tinyLlama({ context: 512 }));
const settings = { cacheDir: path.join(folder, "cache"), args: ["--models-default", model] };

let daemon = await startDaemon(settings);
const { id } = await create(daemon);
const seen: number[] = [];
while (findings.goesOn) {
  const kill = findings.begin();
  await sleep(random.int(LIFE_MS.least, LIFE_MS.most));
  daemon.kill("SIGKILL");
  await daemon.exited;
  daemon = await startDaemon(settings);
  const { request_counts: counts, status } = await client(daemon).batches.retrieve(id);
  const answered = (counts?.completed ?? 0) + (counts?.failed ?? 0);
  if (answered < (seen.at(-1) ?? 0))
    findings.add("answers were lost", `kill ${kill}: ${answered} of ${seen.at(-1)}`);
  seen.push(answered);
  if (status === "completed") break;
}
const startedAt = performance.now();
const batch = await end();
await compare(batch);
await daemon.stop();
rmSync(folder, { recursive: true });
findings.finish({
  requests: REQUESTS,
  "answered at the kills": seen.join(", "),
  "seconds for the rest": Math.round((performance.now() - startedAt) / 1000),
});

function client({ url }: TestDaemon): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: "any" });
}

async function create(first: TestDaemon): Promise<Batch> {
  const lines = Array.from({ length: REQUESTS }, (_, at) => {
    const body = { prompt: `Once ${at}`, max_tokens: random.int(1, 8), seed: at };
    return `${JSON.stringify({ custom_id: `request-${at}`, method: "POST", url: ENDPOINT, body })}\n`;
  });
  const file = await client(first).files.create({
    file: await toFile(Buffer.from(lines.join("")), "requests.jsonl"),
    purpose: "batch",
  });
  return await client(first).batches.create({
    input_file_id: file.id,
    endpoint: ENDPOINT,
    completion_window: "24h",
  });
}

async function end(): Promise<Batch> {
  let answered = -1;
  let changedAt = performance.now();
  for (;;) {
    const now = await client(daemon).batches.retrieve(id);
    if (now.status === "completed") return now;
    const done = (now.request_counts?.completed ?? 0) + (now.request_counts?.failed ?? 0);
    if (done !== answered) changedAt = performance.now();
    answered = done;
    if (performance.now() - changedAt > STANDSTILL_MS) {
      findings.add("the batch has stopped", `${now.status}, ${done} of ${REQUESTS}`);
      return now;
    }
    await sleep(200);
  }
}

async function compare({ output_file_id: output, error_file_id: errors }: Batch): Promise<void> {
  if (errors) findings.add("a request was refused", (await idsOf(errors)).join(", ").slice(0, 500));
  const wanted = Array.from({ length: REQUESTS }, (_, at) => `request-${at}`);
  const found = output ? await idsOf(output) : [];
  if (found.join("\n") === wanted.join("\n")) return;
  const missing = wanted.filter((each) => !found.includes(each));
  findings.add(
    "not each request has one answer",
    `${found.length} answers, ${new Set(found).size} of them different; missing: ${missing.slice(0, 5).join(", ")}`,
  );
}

async function idsOf(file: string): Promise<string[]> {
  const text = await (await client(daemon).files.content(file)).text();
  return text
    .trimEnd()
    .split("\n")
    .map((line) => {
      const { custom_id: custom }: { custom_id: string } = JSON.parse(line);
      return custom;
    });
}
