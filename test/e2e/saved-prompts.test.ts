import { createHash } from "node:crypto";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { writeModel } from "../support/engine-fixture.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";
import { tinyLlama } from "../support/tiny-models.ts";

const MODEL = "daybreak-mini";
const PROMPT = "Once upon a time there was a little girl who lived in a village near the forest. ".repeat(3);
const LEAST_CACHED = 100;

let folder: string;
let cacheDir: string;
let daemon: TestDaemon;

const start = async (): Promise<void> => {
  daemon = await startDaemon({ cacheDir, args: ["--engine-threads", "1"] });
};

beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-prompts-"));
  cacheDir = path.join(folder, "cache");
  await start();
});

afterAll(async () => {
  await daemon.stop();
  rmSync(folder, { recursive: true, force: true });
});

const usageSchema = z.object({
  choices: z.tuple([z.object({ text: z.string() })]),
  usage: z.object({ prompt_tokens_details: z.object({ cached_tokens: z.int() }) }),
});

async function complete(): Promise<{ text: string; cached: number }> {
  const body = { model: MODEL, prompt: PROMPT, max_tokens: 8, temperature: 0 };
  const { choices, usage } = usageSchema.parse((await call("POST", "/v1/completions", body)).body);
  return { text: choices[0].text, cached: usage.prompt_tokens_details.cached_tokens };
}

async function call(
  method: string,
  route: string,
  body?: object,
): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${daemon.url}${route}`, {
    method,
    ...(body && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
  });
  return { status: response.status, body: await response.json() };
}

const slots = (body?: object, model = MODEL) =>
  call(body ? "POST" : "GET", `/api/models/${model}/slots`, body);
const failure = (status: number, code: string) => ({ status, body: { error: { code } } });
const folderOf = (alias: string): string =>
  path.join(cacheDir, "prompts", createHash("sha256").update(alias).digest("hex").slice(0, 32));

test("a reloaded model restores its last conversation, also after a restart of the daemon", async () => {
  const { text, cached } = await complete();
  expect(cached).toBe(0);
  await call("POST", `/api/models/${MODEL}/unload`);
  await call("POST", "/api/models/load", { alias: MODEL });
  expect(await complete()).toEqual({ text, cached: expect.toSatisfy((count) => count >= LEAST_CACHED) });
  await daemon.stop();
  await start();
  expect(await complete()).toEqual({ text, cached: expect.toSatisfy((count) => count >= LEAST_CACHED) });
  // The same conversation is saved once.
  expect(readdirSync(folderOf(MODEL))).toEqual([expect.stringMatching(/^@[0-9a-f]{16}\.slot$/)]);
});

test("a prompt is saved by name, restored into an erased slot, listed and deleted", async () => {
  const { text } = await complete();
  const saved = await slots({ action: "save", name: "story" });
  expect(saved).toMatchObject({ status: 200, body: { status: "saved", name: "story" } });
  const { slot } = z.object({ slot: z.int() }).parse(saved.body);
  expect(await slots({ action: "erase", slot })).toMatchObject({ body: { status: "erased", slot } });
  expect((await complete()).cached).toBe(0);
  expect(await slots({ action: "erase", slot })).toMatchObject({ body: { status: "erased", slot } });
  expect(await slots({ action: "restore", name: "story", slot })).toMatchObject({
    status: 200,
    body: { status: "restored", slot, tokens: expect.toSatisfy((count) => count >= LEAST_CACHED) },
  });
  expect(await complete()).toEqual({ text, cached: expect.toSatisfy((count) => count >= LEAST_CACHED) });
  expect(await slots()).toMatchObject({
    body: {
      slots: expect.arrayContaining([expect.objectContaining({ slot, busy: false })]),
      saved: expect.arrayContaining([
        expect.objectContaining({ name: "story", automatic: false, damaged: false }),
      ]),
    },
  });
});

test("saved prompts of another model and damaged ones are refused without ending the engine", async () => {
  const story = path.join(folderOf(MODEL), "story.slot");
  const file = writeModel(folder, "other", tinyLlama());
  await call("POST", "/api/models/load", { alias: "other", path: file });
  mkdirSync(folderOf("other"), { recursive: true });
  copyFileSync(story, path.join(folderOf("other"), "story.slot"));
  expect(await slots({ action: "restore", name: "story" }, "other")).toMatchObject(
    failure(409, "slot_state_mismatch"),
  );
  const bytes = readFileSync(story);
  for (const damage of [
    (copy: Buffer) => copy.subarray(0, -1000),
    (copy: Buffer) => Buffer.concat([copy, copy]),
    (copy: Buffer) => copy.fill(0x7f, copy.length >> 1, (copy.length >> 1) + 8),
    (copy: Buffer) => copy.fill(0xff, 8, 12),
    () => Buffer.from("nonsense"),
  ]) {
    writeFileSync(story, damage(Buffer.from(bytes)));
    expect(await slots({ action: "restore", name: "story" })).toMatchObject(
      failure(409, "slot_state_mismatch"),
    );
  }
  expect((await complete()).cached).toBeGreaterThanOrEqual(LEAST_CACHED);
  expect(await call("DELETE", `/api/models/${MODEL}/slots?name=story`)).toMatchObject({ status: 200 });
  expect(await slots({ action: "restore", name: "story" })).toMatchObject(
    failure(404, "slot_state_not_found"),
  );
  expect(await slots({ action: "save", name: "../story" })).toMatchObject(failure(400, "invalid_parameter"));
});
