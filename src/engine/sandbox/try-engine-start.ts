import type { ChildProcess } from "node:child_process";
import { Readable } from "node:stream";
import { Watchdog } from "../../async/timers.ts";
import { exhaustedResource } from "../../errors/service-error.ts";
import { CHILD_OUTPUT_FD } from "../channel/parent-channel.ts";
import { killGroup, LastLines } from "../child-process.ts";
import { restrictedProcess, type SpawnEngine, spawnEngine } from "../launch.ts";
import type { Sandbox } from "./sandboxes.ts";

/** Longest time for the trial, in milliseconds; it takes a tenth of a second on an idle machine. */
export const TRIAL_MS = 60_000;

/** Text that the trial process must echo. */
const GREETING = "Can an engine run here?";

interface Trial {
  /** Encloses the process; absent: Node's permission model alone restricts it. */
  readonly sandbox?: Sandbox;
  readonly spawn?: SpawnEngine;
  readonly deadlineMs?: number | undefined;
}

/**
 * Runs a small program with an engine's permissions, pipes and threads. Returns why that failed; undefined when it
 * worked.
 * @throws the system's error when it lacks the resources to start a process, which says nothing about the sandbox
 */
export async function tryEngineStart({
  sandbox,
  spawn = spawnEngine,
  deadlineMs = TRIAL_MS,
}: Trial = {}): Promise<string | undefined> {
  const hidesProcesses = sandbox !== undefined && sandbox.name !== "sandbox-exec";
  const { command, args, ...options } = restrictedProcess("sandbox/trial-process", {
    args: hidesProcesses ? ["own-processes"] : [],
    sandbox,
  });
  const child = spawn(command, args, options);
  const output = LastLines.of(child);
  child.stdin?.on("error", () => {});
  child.stdin?.write(GREETING);
  const answer = collectAnswer(child);
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
      if (code === 0) resolve(answer() === GREETING ? undefined : "what it writes does not arrive");
      else resolve(output.lastError ?? output.last ?? `it exited with ${signal ?? `code ${code}`}`);
    });
  }).finally(() => watchdog.stop());
  return isLate ? `no result within ${deadlineMs / 1000} s` : why;
}

/** Collects what a process writes to the channel; the result is complete when the process has ended. */
function collectAnswer(child: ChildProcess): () => string {
  let text = "";
  const pipe: unknown = child.stdio?.[CHILD_OUTPUT_FD];
  if (pipe instanceof Readable) {
    pipe.setEncoding("utf8").on("data", (part: string) => (text += part));
    pipe.on("error", () => {});
  }
  return () => text;
}
