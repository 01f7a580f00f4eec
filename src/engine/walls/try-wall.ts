import path from "node:path";
import { Watchdog } from "../../async/watchdog.ts";
import { exhaustedResource } from "../../errors/exhausted-resource.ts";
import { killGroup } from "../process-signals.ts";
import { LastLines } from "../last-lines.ts";
import { engineRights, MINIMAL_ENVIRONMENT, NETWORK_CLOSER, type SpawnEngine } from "../launch.ts";
import type { Wall } from "./wall.ts";

/** Longest time for the trial, in milliseconds; it takes a tenth of a second on an idle machine. */
export const TRIAL_MS = 60_000;

const KEPT_LINES = 5;

/**
 * Runs a small program with an engine's permissions inside a wall. Returns why that failed; undefined when it worked.
 * @throws the system's error when it lacks the resources to start a process, which says nothing about the wall
 */
export async function tryWall(
  wall: Wall,
  runtime: string,
  spawn: SpawnEngine,
  deadlineMs = TRIAL_MS,
): Promise<string | undefined> {
  const entry = path.join(import.meta.dirname, `trial-process${path.extname(import.meta.filename)}`);
  const readable = [
    NETWORK_CLOSER,
    path.join(import.meta.dirname, path.sep),
    path.join(import.meta.dirname, "..", "channel", path.sep),
    path.join(import.meta.dirname, "..", "..", "errors", path.sep),
    path.join(import.meta.dirname, "..", "..", "json", path.sep),
  ];
  const what = wall.name === "sandbox-exec" ? [] : ["own-processes"];
  const { command, args, ...options } = wall.enclose(
    {
      command: runtime,
      args: [...engineRights(readable), entry, ...what],
      env: MINIMAL_ENVIRONMENT,
      cwd: import.meta.dirname,
    },
    { readable },
  );
  const child = spawn(command, args, options);
  const output = new LastLines(KEPT_LINES);
  if (child.stderr) output.watch(child.stderr);
  child.stdout?.resume();
  child.stdin?.on("error", () => {});
  let isLate = false;
  const watchdog = new Watchdog(deadlineMs, () => {
    isLate = true;
    killGroup(child);
  });
  const why = await new Promise<string | undefined>((resolve, reject) => {
    child.on("error", (error) => {
      if (exhaustedResource(error) === undefined) resolve(error.message);
      else reject(error);
    });
    child.on("close", (code, signal) => {
      if (code === 0) resolve(undefined);
      else resolve(output.lastError ?? output.last ?? `it exited with ${signal ?? `code ${code}`}`);
    });
  }).finally(() => watchdog.stop());
  return isLate ? `no result within ${deadlineMs / 1000} s` : why;
}
