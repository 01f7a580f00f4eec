import { rmSync } from "node:fs";
import path from "node:path";
import { startDaemon, type TestDaemon } from "./start-daemon.ts";

let shared: Promise<TestDaemon> | undefined;

/**
 * A daemon with the settings and the model that it has by default. It is shared by the test files that one worker runs
 * one after the other, for a start costs more than most of them, and ends with the worker: so for tests alone that only
 * ask it things, end what they begin, and hold whatever has been asked or loaded before.
 */
export function sharedDaemon(): Promise<TestDaemon> {
  shared ??= startShared();
  return shared;
}

/** Makes a model of a Modelfile and loads it; {@link removeModel} takes it away again. */
export async function addModel(daemon: TestDaemon, alias: string, modelfile: string): Promise<void> {
  await call(daemon, "POST", "/api/models/create", { alias, modelfile });
  await call(daemon, "POST", "/api/models/load", { alias });
}

/** Takes a model out of memory and forgets it. */
export async function removeModel(daemon: TestDaemon, alias: string): Promise<void> {
  await call(daemon, "POST", `/api/models/${alias}/unload`);
  await call(daemon, "DELETE", `/api/models/${alias}`);
}

async function call({ url }: TestDaemon, method: string, route: string, body?: object): Promise<void> {
  const json = body && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(url + route, { method, ...json });
  if (!answer.ok) throw new Error(`${method} ${route}: ${answer.status} ${await answer.text()}`);
}

async function startShared(): Promise<TestDaemon> {
  // Below npm a daemon ends with its parent: also when this worker is killed.
  const daemon = await startDaemon({ env: { npm_lifecycle_event: "test" } });
  // An exit ends it and removes what it has left; the signal by which vitest ends a worker would not be one.
  process.once("exit", () => rmSync(path.dirname(daemon.socket), { recursive: true, force: true }));
  process.once("SIGTERM", () => process.exit());
  return daemon;
}
