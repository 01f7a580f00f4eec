import { type ChildProcess, spawn, type SpawnOptions } from "node:child_process";
import { runChild } from "../../launch/hand-over.mjs";
import { ProgramEnded } from "../cli-error.ts";

/** Windows runs these by its shell alone. */
const SHELL_SCRIPT = /\.(?:cmd|bat)$/i;

/**
 * Goes on with another program in place of this one: it gets the terminal and every signal, and its exit code is this
 * process's.
 * @throws ProgramEnded when the program has ended, or cannot be started
 */
export async function runAgent(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<never> {
  Object.assign(process.env, env);
  if (SHELL_SCRIPT.test(program)) {
    await runChild(process.env["ComSpec"] ?? "cmd.exe", shellArguments(program, args), {
      spawn: spawnVerbatim,
    });
  } else await runChild(program, args);
  throw new ProgramEnded(Number(process.exitCode ?? 0));
}

/** What makes cmd.exe run a script with these arguments as they are. */
export function shellArguments(program: string, args: readonly string[]): string[] {
  const quoted = [program, ...args].map((word) => `"${word.replaceAll('"', '""')}"`);
  return ["/d", "/s", "/c", `"${quoted.join(" ")}"`];
}

function spawnVerbatim(file: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  return spawn(file, args, { ...options, windowsVerbatimArguments: true });
}
