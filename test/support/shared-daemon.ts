import { readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { expect } from "vitest";
import { type FixtureHub, startFixtureHub } from "./fixture-hub.ts";
import { PROGRAM } from "./program.ts";
import { type DaemonOptions, startDaemon, type TestDaemon } from "./start-daemon.ts";

/** Pages of this origin may use the daemons that are shared. */
export const ALLOWED_ORIGIN = "https://allowed.example";

/** Longest body that they take, in bytes. */
export const BODY_LIMIT = 131_072;

/** Configuration of {@link guardedDaemon}. */
export const GUARDED = {
  key: "key-that-must-not-leak",
  hubToken: "token-that-must-not-leak",
  /** Requests that it works on at once; none waits. */
  slots: 4,
} as const;

let hub: Promise<FixtureHub> | undefined;
let plain: Promise<TestDaemon> | undefined;
let guarded: Promise<TestDaemon> | undefined;
let plainUser: string | undefined;

/**
 * A daemon with the model that it has by default, which pulls from {@link sharedHub}. It is shared by the test files
 * that one worker runs one after the other, for a start costs more than most of them, and ends with the worker: so for
 * tests alone that only ask it things, end what they begin, and hold whatever has been asked or loaded before.
 */
export async function sharedDaemon(): Promise<TestDaemon> {
  plain ??= sharedHub().then(({ url }) => startShared({ env: { HUB_URL: url } }));
  const daemon = await plain;
  const { testPath } = expect.getState();
  if (testPath !== plainUser) await unloadOthers(daemon);
  plainUser = testPath;
  return daemon;
}

/** Leaves in memory what a daemon begins with alone, whatever the file before has loaded. */
async function unloadOthers(daemon: TestDaemon): Promise<void> {
  const answer = await fetch(`${daemon.url}/api/models`);
  const { models }: { models: { alias: string; state: string; is_default: boolean }[] } = JSON.parse(
    await answer.text(),
  );
  for (const { alias, state, is_default: isDefault } of models)
    if (state === "loaded" && !isDefault) await unloadModel(daemon, alias);
}

/** The hub of {@link sharedDaemon}: it holds what test files put there. */
export function sharedHub(): Promise<FixtureHub> {
  hub ??= startFixtureHub();
  return hub;
}

/** The file of the model that ships. */
export function shippedModel(): Buffer {
  return readFileSync(path.join(PROGRAM, "models/daybreak-mini.gguf"));
}

/** A daemon that is shared likewise, asks for a key, logs all, and works on few requests. */
export function guardedDaemon(): Promise<TestDaemon> {
  guarded ??= startShared({
    args: ["--log-level", "trace", "--models-slots", String(GUARDED.slots), "--models-queue-size", "0"],
    env: { SERVICE_API_KEYS: GUARDED.key, HUB_TOKEN: GUARDED.hubToken },
  });
  return guarded;
}

/** Makes a model of a Modelfile and loads it; {@link removeModel} takes it away again. */
export async function addModel(daemon: TestDaemon, alias: string, modelfile: string): Promise<void> {
  await call(daemon, "POST", "/api/models/create", { alias, modelfile });
  await loadModel(daemon, alias);
}

/** Takes a model out of memory and forgets it. */
export async function removeModel(daemon: TestDaemon, alias: string): Promise<void> {
  await unloadModel(daemon, alias);
  await call(daemon, "DELETE", `/api/models/${alias}`);
}

/** Loads a model that is there; {@link unloadModel} takes it out of memory again. */
export async function loadModel(daemon: TestDaemon, alias: string): Promise<void> {
  await call(daemon, "POST", "/api/models/load", { alias });
}

export async function unloadModel(daemon: TestDaemon, alias: string): Promise<void> {
  await call(daemon, "POST", `/api/models/${alias}/unload`);
}

async function call({ url }: TestDaemon, method: string, route: string, body?: object): Promise<void> {
  const headers = { "content-type": "application/json", authorization: `Bearer ${GUARDED.key}` };
  const answer = await fetch(url + route, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  if (!answer.ok) throw new Error(`${method} ${route}: ${answer.status} ${await answer.text()}`);
}

async function startShared({ args = [], env }: DaemonOptions): Promise<TestDaemon> {
  const daemon = await startDaemon({
    args: ["--http-cors-origins", ALLOWED_ORIGIN, "--http-body-limit", String(BODY_LIMIT), ...args],
    // Below npm a daemon ends with its parent: also when this worker is killed.
    env: { npm_lifecycle_event: "test", ...env },
  });
  // An exit ends it and removes what it has left; the signal by which vitest ends a worker would not be one.
  process.once("exit", () => rmSync(path.dirname(daemon.socket), { recursive: true, force: true }));
  process.once("SIGTERM", () => process.exit());
  return daemon;
}
