import { type ChildProcess, spawn } from "node:child_process";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { driverEnvironment, gpuPermissions } from "./gpu/gpu-process-rights.ts";
import { packageFolder } from "./package-folder.ts";

/** Starts a process with an IPC channel; the default is Node's own. */
export type SpawnEngine = (
  command: string,
  args: readonly string[],
  options: SpawnEngineOptions,
) => ChildProcess;

export interface SpawnEngineOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

export interface LaunchOptions {
  /** The Node binary; it must be version 24 or later. */
  readonly runtime: string;
  /** llama.cpp's WebAssembly, as prepareEngine() chose it. */
  readonly wasmPath: string;
  /** Largest heap that it declares, in bytes. */
  readonly heapLimitBytes: number;
  /** Files that the engine may read beside its own code: the model's. */
  readonly files: readonly string[];
  /** For an engine that uses a GPU. */
  readonly gpu?: EngineGpu | undefined;
  readonly spawn: SpawnEngine;
}

export interface EngineGpu {
  /** Entry file of Dawn: the engine may load addons. */
  readonly dawnPath: string;
  /** Longest wait for the GPU's work, in milliseconds. */
  readonly longestWaitMs: number;
}

/** Variables that an operating system needs to start a process at all; everything else stays with the daemon. */
const KEPT_VARIABLES = ["SystemRoot", "windir"];

export const spawnEngine: SpawnEngine = (command, args, options) =>
  spawn(command, args, {
    env: { ...options.env },
    cwd: options.cwd,
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    // A group of its own: Ctrl-C and a hang-up of the daemon's terminal must reach the daemon alone, which drains.
    // On Windows this would open a console window.
    detached: process.platform !== "win32",
    serialization: "advanced",
    windowsHide: true,
  });

/**
 * Starts an engine process that may read its own code and the given files, and nothing else: no write, no
 * network, no child process, no addon, no variable of the environment. One that uses a GPU may also load Dawn, and
 * its drivers see the variables that are meant for them.
 */
export function launchEngine(options: LaunchOptions): ChildProcess {
  const { runtime, wasmPath, heapLimitBytes, files, gpu, spawn: start } = options;
  const entry = entryPath();
  const args = [
    "--permission",
    "--allow-worker",
    ...(gpu ? gpuPermissions(gpu.dawnPath) : []),
    ...[...readableCode(), wasmPath, ...files].map((readable) => `--allow-fs-read=${readable}`),
    "--disable-warning=ExperimentalWarning",
    "--disable-warning=SecurityWarning",
    entry,
    pathToFileURL(wasmPath).href,
    String(heapLimitBytes),
    ...(gpu ? [gpu.dawnPath, String(gpu.longestWaitMs)] : []),
  ];
  const env = {
    ...(gpu ? driverEnvironment(process.env) : {}),
    ...minimalEnvironment(process.env),
  };
  return start(runtime, args, { env, cwd: WORKING_FOLDER });
}

/**
 * Where processes with restricted rights run. Node lets a worker that is started from text read all of the working
 * folder, whatever the permissions say (seen with Node 26.10), so it must be one that the process may read anyway.
 */
const WORKING_FOLDER = import.meta.dirname;

/** The entry beside this file: TypeScript in the repository, JavaScript in the built package. */
function entryPath(): string {
  return path.join(import.meta.dirname, "host", `engine-process${path.extname(import.meta.filename)}`);
}

/** What an engine process imports, and the package.json by which Node finds it. */
function readableCode(): string[] {
  const wllama = packageFolder("@wllama/wllama");
  const zod = packageFolder("zod");
  const folders = [
    import.meta.dirname,
    path.join(import.meta.dirname, "..", "errors"),
    path.join(wllama.folder, "esm"),
    zod.folder,
  ];
  return [
    ...wllama.links,
    ...zod.links,
    ...folders.map((folder) => path.join(folder, path.sep)),
    path.join(wllama.folder, "package.json"),
    path.join(import.meta.dirname, "..", "launch", "skip-languages.mjs"),
  ];
}

/** glibc keeps freed memory for each thread otherwise: 30 MiB more after some minutes. Others ignore it. */
const OWN_VARIABLES = { MALLOC_ARENA_MAX: "1" };

/** What is left of an environment for a process that handles files and text from strangers: no secret. */
export function minimalEnvironment(environment: NodeJS.ProcessEnv): Record<string, string> {
  const kept: Record<string, string> = { ...OWN_VARIABLES };
  for (const name of KEPT_VARIABLES) {
    const value = environment[name];
    if (value !== undefined) kept[name] = value;
  }
  return kept;
}
