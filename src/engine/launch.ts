import { type ChildProcess, spawn } from "node:child_process";
import path from "node:path";
import { Writable } from "node:stream";
import { pathToFileURL } from "node:url";
import { exhaustedResource, isSystemError } from "../errors/exhausted-resource.ts";
import { ServiceError } from "../errors/service-error.ts";
import { FIRST_INPUT_ON } from "./channel/descriptors.ts";
import { findPackage } from "./find-package.ts";
import type { ProcessStart, Wall } from "./walls/wall.ts";

/** Starts a process with the pipes of a {@link ChildChannel}. */
export type SpawnEngine = (
  command: string,
  args: readonly string[],
  options: SpawnEngineOptions,
) => ChildProcess;

type SpawnEngineOptions = Pick<ProcessStart, "env" | "cwd" | "inputs">;

interface LaunchOptions {
  /** The Node binary; it must be version 24 or later. */
  readonly runtime: string;
  /** llama.cpp's WebAssembly, as prepareEngine() chose it. */
  readonly wasmPath: string;
  /** Largest heap of this engine, in bytes. */
  readonly heapLimitBytes: number;
  /** Files that the engine may read beside its own code: the model's. */
  readonly files: readonly string[];
  /** For an engine that uses a GPU. */
  readonly gpu?: EngineGpu | undefined;
  /** What the operating system puts around it; drivers of GPUs need more than it lets through. */
  readonly wall?: Wall | undefined;
  readonly spawn: SpawnEngine;
}

interface EngineGpu {
  /** Entry file of Dawn: the engine may load addons. */
  readonly dawnPath: string;
  /** Longest wait for the GPU's work, in milliseconds. */
  readonly longestWaitMs: number;
}

export const spawnEngine: SpawnEngine = (command, args, { env, cwd, inputs = [] }) => {
  const child = spawn(command, args, {
    env: { ...env },
    cwd,
    stdio: ["pipe", "pipe", "pipe", "pipe", ...inputs.map(() => "pipe" as const)],
    // A group of its own: Ctrl-C and a hang-up of the daemon's terminal must reach the daemon alone, which drains.
    // On Windows this would open a console window.
    detached: process.platform !== "win32",
    windowsHide: true,
  });
  inputs.forEach((bytes, index) => {
    // One that could not be started has no pipes; one that has ended reads nothing.
    const pipe: unknown = child.stdio?.[FIRST_INPUT_ON + index];
    if (!(pipe instanceof Writable)) return;
    pipe.on("error", () => {});
    pipe.end(bytes);
  });
  return child;
};

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "the program that runs it is not there any more",
  EACCES: "this user may not run the program",
  EPERM: "the system does not permit it",
};

/**
 * A process that could not be started, as the answer to the request that needed it.
 * @param what was to be started: "The model's engine"
 */
export function spawnFailure(what: string, cause: unknown): ServiceError {
  const exhausted = exhaustedResource(cause);
  if (exhausted !== undefined) {
    return new ServiceError("resources_exhausted", `${what} cannot be started: ${exhausted}.`, { cause });
  }
  const program = isSystemError(cause) ? (cause.path ?? process.execPath) : process.execPath;
  const reason = (isSystemError(cause) ? REASONS[cause.code] : undefined) ?? "the system refuses it";
  return new ServiceError(
    "model_load_failed",
    `${what} cannot be started: ${reason} (${program}). Start the daemon again, or install it anew.`,
    { cause },
  );
}

/** Node's permission model knows of the network from 25 on. */
const NODE_GUARDS_NETWORK = process.allowedNodeEnvironmentFlags.has("--allow-net");

/** Closes the network from within where Node does not guard it; whoever has {@link engineRights} must be able to read it. */
export const NETWORK_CLOSER = hostFile("close-network");

/** What every process that handles files and text from strangers has to do without, as far as Node can tell it. */
export function engineRights(readable: readonly string[]): string[] {
  return [
    "--permission",
    "--allow-worker",
    // SQLite does not heed the permissions.
    "--no-experimental-sqlite",
    // Else a signal opens the inspector.
    "--disable-sigusr1",
    "--disable-proto=delete",
    ...readable.map((file) => `--allow-fs-read=${file}`),
    ...(NODE_GUARDS_NETWORK ? [] : ["--require", NETWORK_CLOSER]),
    "--disable-warning=ExperimentalWarning",
    "--disable-warning=SecurityWarning",
  ];
}

/**
 * Starts an engine process that may read its own code and the given files, and nothing else: no write, no
 * network, no child process, no addon, no variable of the environment. One that uses a GPU may also load Dawn, and
 * its drivers see the variables that are meant for them.
 * @throws ServiceError resources_exhausted or model_load_failed when the system starts no process
 */
export function launchEngine(options: LaunchOptions): ChildProcess {
  const { runtime, wasmPath, heapLimitBytes, files, gpu, wall, spawn: start } = options;
  const readable = [...readableCode(), wasmPath, ...files];
  const args = [
    ...engineRights(readable),
    ...(gpu ? gpuPermissions(gpu.dawnPath) : []),
    `--max-old-space-size=${SCRIPT_HEAP_MIB}`,
    hostFile("engine-main"),
    pathToFileURL(wasmPath).href,
    String(heapLimitBytes),
    ...(gpu ? [gpu.dawnPath, String(gpu.longestWaitMs)] : []),
  ];
  const env = {
    ...(gpu ? driverEnvironment(process.env) : {}),
    ...MINIMAL_ENVIRONMENT,
  };
  const plain: ProcessStart = { command: runtime, args, env, cwd: WORKING_FOLDER };
  const { command, args: all, ...rest } = wall && !gpu ? wall.enclose(plain, { readable }) : plain;
  try {
    return start(command, all, rest);
  } catch (error) {
    // Some failures are thrown, others reported by the child's event.
    throw spawnFailure("The model's engine", error);
  }
}

/**
 * JavaScript's own heap of an engine's main thread, which only passes messages on; the largest request takes some
 * times its own size. The model is in WebAssembly's memory, which has a limit of its own.
 */
const SCRIPT_HEAP_MIB = 512;

/**
 * Where processes with restricted rights run. Node lets a worker that is started from text read all of the working
 * folder, whatever the permissions say (seen with Node 26.10), so it must be one that the process may read anyway.
 */
const WORKING_FOLDER = import.meta.dirname;

/** A module of the engine's side: TypeScript in the repository, JavaScript in the built package. */
function hostFile(name: string): string {
  return path.join(import.meta.dirname, "host", `${name}${path.extname(import.meta.filename)}`);
}

/** What an engine process imports, and the package.json by which Node finds it. */
function readableCode(): string[] {
  const wllama = findPackage("@wllama/wllama");
  const zod = findPackage("zod");
  const folders = [
    import.meta.dirname,
    ...["async", "errors", "json", "machine"].map((room) => path.join(import.meta.dirname, "..", room)),
    path.join(import.meta.dirname, "..", "..", "wasm"),
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

/**
 * The environment of a process that handles files and text from strangers: nothing of the daemon's. What Windows needs
 * to start a process at all Node adds there by itself.
 */
export const MINIMAL_ENVIRONMENT: Readonly<Record<string, string>> = {
  // glibc keeps freed memory for each thread otherwise: 30 MiB more after some minutes. Others ignore it.
  MALLOC_ARENA_MAX: "1",
};

/**
 * What a process needs beyond an engine's rights in order to load Dawn. Only processes that use a GPU get it: native
 * code is outside the sandbox.
 */
export function gpuPermissions(dawnPath: string): string[] {
  return ["--allow-addons", `--allow-fs-read=${path.join(path.dirname(dawnPath), path.sep)}`];
}

/**
 * Variables by which people and systems tell graphics drivers where they are and which to use; none of them holds
 * a secret. Drivers keep compiled shaders in folders that the others name.
 */
const DRIVER_VARIABLES =
  /^(VK_|MESA_|RADV_|ANV_|NVK_|TU_|LP_|GALLIUM_|LIBGL_|DRI_|__NV_|__GLX_|__EGL_|__GL_|CUDA_VISIBLE_DEVICES$|XDG_RUNTIME_DIR$|XDG_CACHE_HOME$|XDG_DATA_DIRS$|XDG_DATA_HOME$|XDG_CONFIG_DIRS$|LD_LIBRARY_PATH$|HOME$|TMPDIR$|PATH$|LOCALAPPDATA$|APPDATA$|USERPROFILE$|ProgramData$|ProgramFiles|TEMP$|TMP$)/;

/** The part of an environment that graphics drivers look at. */
export function driverEnvironment(environment: NodeJS.ProcessEnv): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment)) {
    if (value !== undefined && DRIVER_VARIABLES.test(name)) kept[name] = value;
  }
  return kept;
}
