import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import OpenAI, { toFile } from "openai";
import { expect, onTestFinished, test } from "vitest";
import { answeredLines } from "../support/answered-lines.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";

const LINES = 300;
const KILLS = 6;
/** At least, and up to so much longer, between a start and its kill. */
const LIFE_MS = { least: 100, more: 1500 };
const MODEL = "daybreak-mini";

function clientOf({ url }: TestDaemon): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: "any" });
}

function line(at: number): object {
  return {
    custom_id: `line-${at}`,
    method: "POST",
    url: "/v1/chat/completions",
    // Each seventh is refused by the route.
    body: {
      model: MODEL,
      max_tokens: at % 7 === 0 ? "no number" : 1 + (at % 5),
      temperature: 0,
      messages: [{ role: "user", content: `Count from ${at}` }],
    },
  };
}

function requests(): string {
  return Array.from({ length: LINES }, (_, at) => `${JSON.stringify(line(at))}\n`).join("");
}

test("each line is answered exactly once, whenever the daemon is killed", { timeout: 300_000 }, async () => {
  const cacheDir = mkdtempSync(path.join(os.tmpdir(), "daybreak-batch-"));
  onTestFinished(() => rmSync(cacheDir, { recursive: true, force: true }));
  let daemon = await startDaemon({ cacheDir });
  onTestFinished(async () => await daemon.stop());
  let client = clientOf(daemon);
  const file = await client.files.create({
    file: await toFile(Buffer.from(requests()), "requests.jsonl"),
    purpose: "batch",
  });
  const { id } = await client.batches.create({
    input_file_id: file.id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
  });
  const seen: number[] = [];
  for (let kill = 0; kill < KILLS; kill += 1) {
    await sleep(LIFE_MS.least + Math.random() * LIFE_MS.more);
    daemon.kill("SIGKILL");
    await daemon.exited;
    daemon = await startDaemon({ cacheDir });
    client = clientOf(daemon);
    const batch = await client.batches.retrieve(id);
    seen.push(batch.request_counts?.completed ?? 0);
  }
  await expect
    .poll(async () => (await client.batches.retrieve(id)).status, { timeout: 200_000, interval: 200 })
    .toBe("completed");
  const batch = await client.batches.retrieve(id);
  const [answered, refused] = await Promise.all([
    answeredLines(client, batch.output_file_id),
    answeredLines(client, batch.error_file_id),
  ]);
  const all = Array.from({ length: LINES }, (_, at) => at);
  expect(answered).toEqual(all.filter((at) => at % 7 !== 0).map((at) => `line-${at}`));
  expect(refused).toEqual(all.filter((at) => at % 7 === 0).map((at) => `line-${at}`));
  expect(batch.request_counts).toEqual({ total: LINES, completed: answered.length, failed: refused.length });
  // It is not begun anew with each start.
  expect(seen).toEqual(seen.toSorted((one, other) => one - other));
});
