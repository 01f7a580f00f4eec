import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { engineProcesses } from "../support/engine-processes.ts";
import { postJson } from "../support/post-json.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";
import { writeGguf } from "../support/gguf-writer.ts";
import { CHATML_TEMPLATE, CHATML_WORDS, tinyLlama } from "../support/tiny-models.ts";

/** Doubles a text of sixteen characters forty times: 16 TB. */
const DOUBLING =
  "{% set ns = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in range(40) %}{% set ns.s = ns.s + ns.s %}{% endfor %}";
const ENDLESS = "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}";
const ITSELF = "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}";

/** How often a machine may be too busy to show something. */
const ROUNDS = 5;

/** A template that is harmless while a model is loaded, and harmful when a message asks for it. */
const onWord = (harm: string): string =>
  `${CHATML_TEMPLATE}{% if messages[0].content == 'boom' %}${harm}{% endif %}`;

const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-templates-"));
let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await startDaemon({ args: ["--models-slots", "1"] });
});
afterAll(async () => {
  await daemon.stop();
  rmSync(folder, { recursive: true });
});

async function post(
  route: string,
  body: object,
  signal?: AbortSignal,
): Promise<{ status: number; body: unknown }> {
  const answer = await postJson(daemon.url + route, body, signal);
  return { status: answer.status, body: await answer.json() };
}

/** Writes a model with this template and loads it, with a name that no try of a test before has used. */
async function load(
  name: string,
  chatTemplate: string,
): Promise<{ alias: string; file: string; status: number; body: unknown }> {
  const alias = `${name}-${(loads += 1)}`;
  const file = path.join(folder, `${alias}.gguf`);
  writeGguf(file, tinyLlama({ words: CHATML_WORDS, chatTemplate }));
  return { alias, file, ...(await post("/api/models/load", { alias, path: file })) };
}
let loads = 0;

const chat = async (model: string, content: string, signal?: AbortSignal) =>
  await post("/api/chat", { model, messages: [{ role: "user", content }], max_tokens: 2 }, signal);

/** Bytes of memory that each engine of the daemon has had at most; Linux alone tells. */
function enginePeaks(): number[] {
  const pids = execFileSync("ps", ["-o", "pid=", "--ppid", String(daemon.pid)], { encoding: "utf8" });
  const peaks: number[] = [];
  for (const pid of pids.trim().split(/\s+/)) {
    const kilobytes = /VmHWM:\s+(\d+)/.exec(statusOf(pid))?.[1];
    if (kilobytes !== undefined) peaks.push(Number(kilobytes) * 1024);
  }
  return peaks;
}

function statusOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/status`, { encoding: "utf8" });
  } catch {
    // It has ended since it was listed.
    return "";
  }
}

describe.each([
  ["doubles its text", DOUBLING + "{{ ns.s }}", /more memory than the model has/],
  ["counts to a billion", "{{ range(1000000000) | length }}", /more memory than the model has/],
  ["calls itself", ITSELF, /nested too deeply/],
  ["is not one", "{% for x in %}", /cannot be used: Unexpected token/],
])("a model whose chat template %s", (what, template, message) => {
  const refusal = { error: { code: "invalid_template", message: expect.stringMatching(message) } };

  test("is refused when it is loaded", async () => {
    expect(await load(what.replaceAll(" ", "-"), template)).toMatchObject({ status: 400, body: refusal });
  });
});

test("a Modelfile whose template never ends is refused when a model is made of it", async () => {
  const modelfile = `FROM daybreak-mini\nTEMPLATE """{{ messages }}${ENDLESS}"""\n`;
  expect(await post("/api/models/create", { alias: "endless", modelfile })).toMatchObject({
    status: 400,
    body: {
      error: { code: "invalid_template", message: expect.stringMatching(/did not finish within/) },
    },
  });
});

test("a Modelfile whose template is longer than any is refused at once", async () => {
  const modelfile = `FROM daybreak-mini\nTEMPLATE """{{ messages }}${"<tool_call>".repeat(80_000)}"""\n`;
  expect(await post("/api/models/create", { alias: "long", modelfile })).toMatchObject({
    status: 400,
    body: { error: { code: "invalid_template" } },
  });
});

describe.skipIf(process.platform !== "linux")("a template that turns hostile in a request", () => {
  test("gets no more memory than its model was given, and the model goes on", async () => {
    const { alias, status } = await load("doubling", onWord(`${DOUBLING}{{ ns.s }}`));
    expect(status).toBe(200);
    expect(await chat(alias, "boom")).toMatchObject({
      status: 400,
      body: { error: { code: "invalid_template" } },
    });
    expect(enginePeaks()).not.toEqual([]);
    for (const peak of enginePeaks()) expect(peak).toBeLessThan(700 * 1024 ** 2);
    expect(await chat(alias, "Hello")).toMatchObject({ status: 200 });
  });

  test("and never ends holds nobody's slot when its client leaves", async () => {
    const { alias, file, status } = await load("endless", onWord(ENDLESS));
    expect(status).toBe(200);
    /** True if the slot is free before the engine, which reads no messages, has been ended. */
    const isFreedBefore = async (): Promise<boolean> => {
      const engines = engineProcesses(file).engine;
      const leaving = new AbortController();
      const left = chat(alias, "boom", leaving.signal).catch(() => "left");
      await expect.poll(() => activeRequests(alias)).toBe(1);
      leaving.abort();
      await left;
      await expect.poll(() => activeRequests(alias), { interval: 20 }).toBe(0);
      return engineProcesses(file).engine.some((pid) => engines.includes(pid));
    };
    let isFreed = false;
    // The engine is ended after five seconds, for which a busy machine may not run what looks.
    for (let round = 0; round < ROUNDS && !isFreed; round += 1) {
      // The next request but one finds a new engine.
      await expect.poll(async () => (await chat(alias, "Hello")).status).toBe(200);
      isFreed = await isFreedBefore();
    }
    expect(isFreed).toBe(true);
    await expect.poll(async () => (await chat(alias, "Hello")).status).toBe(200);
  });
});

async function activeRequests(alias: string): Promise<number> {
  const answer = await fetch(`${daemon.url}/api/models`);
  const { models }: { models: { alias: string; active_requests: number }[] } = JSON.parse(
    await answer.text(),
  );
  return models.find((model) => model.alias === alias)?.active_requests ?? 0;
}
