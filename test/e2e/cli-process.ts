import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { COMPILE_CACHE } from "../support/program.ts";

export const LAUNCHER = fileURLToPath(new URL("../../src/launch/daybreak.mjs", import.meta.url));

export interface CliResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface CliProcess {
  readonly child: ChildProcessWithoutNullStreams;
  /** Resolves at the first output, an answer or reasoning. */
  readonly speaking: Promise<unknown>;
  readonly result: Promise<CliResult>;
}

export interface CliProcessOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Standard input; absent: empty. */
  readonly stdin?: string;
  /** Node that runs the launcher. */
  readonly node?: string;
  readonly launcher?: string;
}

/** Environment without variables of the program and of npm. */
export function cleanEnv(env: NodeJS.ProcessEnv = process.env): NodeJS.ProcessEnv {
  const kept = Object.entries(env).filter(
    ([name]) => !/^(SERVICE_|HUB_|npm_|VITEST|NODE_OPTIONS)/.test(name),
  );
  return { ...Object.fromEntries(kept), XDG_CONFIG_HOME: "/nonexistent", ...COMPILE_CACHE };
}

/** Starts the program as a user's shell would. */
export function startCli(args: readonly string[], options: CliProcessOptions = {}): CliProcess {
  const { node = process.execPath, launcher = LAUNCHER, stdin = "", env = {} } = options;
  const child = spawn(node, [launcher, ...args], { env: { ...cleanEnv(), ...env } });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => (stdout += chunk));
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => (stderr += chunk));
  // A program that does not read its input may exit before it is written.
  child.stdin.on("error", () => {});
  child.stdin.end(stdin);
  const result = new Promise<CliResult>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  return { child, speaking: Promise.race([once(child.stdout, "data"), once(child.stderr, "data")]), result };
}

/** Runs the program until it exits. */
export function runCli(args: readonly string[], options: CliProcessOptions = {}): Promise<CliResult> {
  return startCli(args, options).result;
}
