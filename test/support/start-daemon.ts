import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { ipcAddress } from "./ipc-address.ts";
import { COMPILE_CACHE, copyEngine, PROGRAM } from "./program.ts";

const LAUNCHER = path.join(PROGRAM, "src/launch/daybreak.mjs");
/** A start takes about two seconds; this only ends what hangs, before the hook that waits for it is ended. */
const START_DEADLINE_MS = 250_000;
/** Longer than any drain that a test asks for. */
const STOP_DEADLINE_MS = 60_000;

export interface DaemonOptions {
  /** Further flags of `daybreak serve`. */
  readonly args?: readonly string[];
  /** Further environment; SERVICE_… and HUB_… of the surrounding one are never passed on. */
  readonly env?: Readonly<Record<string, string>>;
  /** Use this cache folder, and do not remove it. */
  readonly cacheDir?: string;
  /** A program, with its arguments, that starts the daemon in its own place: "prlimit --nofile=64", say. */
  readonly through?: readonly string[];
  /** Program that starts the daemon in place of the built one's launcher, and its command. */
  readonly launcher?: string;
  readonly command?: readonly string[];
  /** "ready" (the default): when its models are loaded; "listening": as soon as it answers. */
  readonly until?: "listening" | "ready";
}

interface DaemonExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A daemon in a process of its own. */
export interface TestDaemon {
  readonly url: string;
  readonly socket: string;
  readonly cacheDir: string;
  readonly pid: number;
  /** Everything it has written to stdout and stderr so far. */
  logs(): string;
  kill(signal: NodeJS.Signals): void;
  /** Resolves when the process has ended. */
  readonly exited: Promise<DaemonExit>;
  /** Ends it with SIGTERM, by force when that takes too long, and removes its folder. */
  stop(): Promise<void>;
}

/** Those of this test file that have been started and not stopped. */
export const runningDaemons = new Set<TestDaemon>();

/** The process ended before it listened. */
export class DaemonDidNotStart extends Error {
  readonly code: number | null;
  readonly logs: string;

  constructor(code: number | null, logs: string) {
    super(`the daemon ended with exit code ${code} before it was up:\n${logs}`);
    this.code = code;
    this.logs = logs;
  }
}

/** Starts a real daemon through the launcher, on a free port of 127.0.0.1, with a folder and socket of its own. */
export async function startDaemon(options: DaemonOptions = {}): Promise<TestDaemon> {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-e2e-"));
  const cacheDir = options.cacheDir ?? path.join(folder, "cache");
  copyEngine(cacheDir);
  const socket = options.env?.["SERVICE_SOCKET"] ?? ipcAddress(folder);
  const serve = options.command ?? ["serve", "--http-addr", "127.0.0.1", "--http-port", "0"];
  const launcher = options.launcher ?? LAUNCHER;
  const command = [...(options.through ?? []), process.execPath, launcher, ...serve, ...(options.args ?? [])];
  const child = spawn(command[0] ?? "", command.slice(1), {
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...withoutOwnVariables(process.env),
      ...COMPILE_CACHE,
      XDG_CONFIG_HOME: folder,
      SERVICE_CACHE_DIR: cacheDir,
      SERVICE_SOCKET: socket,
      SERVICE_LOG_FORMAT: "json",
      SERVICE_GPU_MODE: "off", // the machine's GPU is not part of what these tests describe
      ...options.env,
    },
  });
  const output = collectOutput(child);
  const killOnExit = (): void => void child.kill("SIGKILL");
  process.once("exit", killOnExit);
  const exited = new Promise<DaemonExit>((resolve) => {
    // Not "exit": with "close" all its output has arrived.
    child.once("close", (code, signal) => {
      process.off("exit", killOnExit);
      resolve({ code, signal });
    });
  });
  const removeFolder = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  try {
    const [, url = ""] = await output.match(/"Daybreak \S+ listens on (http:[^\s"]+)/, exited);
    if (options.until !== "listening") await output.match(/"Ready/, exited);
    const daemon: TestDaemon = {
      url,
      socket,
      cacheDir,
      pid: child.pid ?? 0,
      logs: output.text,
      kill: (signal) => void child.kill(signal),
      exited,
      async stop() {
        runningDaemons.delete(daemon);
        await end(child, exited);
        removeFolder();
      },
    };
    runningDaemons.add(daemon);
    return daemon;
  } catch (error) {
    await end(child, exited);
    removeFolder();
    throw error;
  }
}

function withoutOwnVariables(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^(SERVICE|HUB)_/.test(name)));
}

async function end(child: ChildProcess, exited: TestDaemon["exited"]): Promise<void> {
  const force = setTimeout(() => child.kill("SIGKILL"), STOP_DEADLINE_MS);
  child.kill("SIGTERM");
  await exited;
  clearTimeout(force);
}

function collectOutput(child: ChildProcess) {
  let text = "";
  const waiting = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      for (const look of waiting) look();
    });
  }
  return {
    text: () => text,
    /** Waits until the output matches; rejects when the process ends first or nothing comes in time. */
    match(pattern: RegExp, exited: TestDaemon["exited"]): Promise<RegExpExecArray> {
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`no ${pattern} in:\n${text}`)), START_DEADLINE_MS);
        const look = (): void => {
          const match = pattern.exec(text);
          if (!match) return;
          waiting.delete(look);
          clearTimeout(timer);
          resolve(match);
        };
        waiting.add(look);
        look();
        void exited.then(({ code }) => {
          clearTimeout(timer);
          reject(new DaemonDidNotStart(code, text));
          return code;
        });
      });
    },
  };
}
