import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, lstatSync, readlinkSync, realpathSync } from "node:fs";
import path from "node:path";
import { Writable } from "node:stream";
import { pathToFileURL } from "node:url";
import { exhaustedResource, isSystemError, ServiceError } from "../errors/service-error.ts";
import { FIRST_INPUT_FD } from "./channel/parent-channel.ts";
import { programCacheVariables } from "./gpu/program-cache.ts";
import type { ProcessStart, Sandbox } from "./sandbox/sandbox.ts";

/** Starts a process with the pipes of a {@link ChildChannel}. */
export type SpawnEngine = (
  command: string,
  args: readonly string[],
  options: SpawnEngineOptions,
) => ChildProcess;

type SpawnEngineOptions = Pick<ProcessStart, "env" | "cwd" | "inputs">;

interface LaunchOptions {
  /** The Node binary, version 24.20 or later. */
  readonly runtime: string;
  /** llama.cpp's WebAssembly, as chosen by prepareEngine(). */
  readonly wasmPath: string;
  /** Largest heap of this engine, in bytes. */
  readonly heapLimitBytes: number;
  /** The model's files, which the engine may read in addition to its code. */
  readonly files: readonly string[];
  /** Absent: the engine uses no GPU. */
  readonly gpu?: EngineGpu | undefined;
  /** Not used with a GPU, because drivers need more access. */
  readonly sandbox?: Sandbox | undefined;
  readonly spawn: SpawnEngine;
}

interface EngineGpu {
  /** Entry file of Dawn; the engine may load native addons. */
  readonly dawnPath: string;
  /** Longest wait for the GPU, in milliseconds. */
  readonly maxWaitMs: number;
  /** Folder for the driver's cache of compiled programs; absent: the driver's default. */
  readonly programCache?: string | undefined;
}

export const spawnEngine: SpawnEngine = (command, args, { env, cwd, inputs = [] }) => {
  const child = spawn(command, args, {
    env: { ...env },
    cwd,
    stdio: ["pipe", "pipe", "pipe", "pipe", ...inputs.map(() => "pipe" as const)],
    // A separate process group: Ctrl-C and a closed terminal must reach only the daemon, which drains. On Windows this
    // would open a console window.
    detached: process.platform !== "win32",
    windowsHide: true,
  });
  inputs.forEach((bytes, index) => {
    // A process that could not be started has no pipes; one that has exited breaks them.
    const pipe: unknown = child.stdio?.[FIRST_INPUT_FD + index];
    if (!(pipe instanceof Writable)) return;
    pipe.on("error", () => {});
    pipe.end(bytes);
  });
  return child;
};

const SPAWN_REFUSALS: Readonly<Record<string, string>> = {
  ENOENT: "its program no longer exists",
  EACCES: "this user may not run its program",
  EPERM: "the system does not permit it",
};

/**
 * Error for a process that could not be started.
 * @param what name of the process in the message, such as "The model's engine"
 */
export function spawnFailure(what: string, cause: unknown): ServiceError {
  const exhausted = exhaustedResource(cause);
  if (exhausted !== undefined) {
    return new ServiceError("resources_exhausted", `${what} cannot be started: ${exhausted}.`, { cause });
  }
  const program = isSystemError(cause) ? (cause.path ?? process.execPath) : process.execPath;
  const reason =
    (isSystemError(cause) ? SPAWN_REFUSALS[cause.code] : undefined) ?? "the system refused to start it";
  return new ServiceError(
    "model_load_failed",
    `${what} cannot be started: ${reason} (${program}). Restart the daemon, or reinstall Daybreak.`,
    { cause },
  );
}

/** Node's permission model covers the network from version 25 on. */
const NODE_GUARDS_NETWORK = process.allowedNodeEnvironmentFlags.has("--allow-net");

/**
 * Module that disables the network where Node's permission model does not; processes with {@link engineRights} must be
 * able to read it.
 */
export const NETWORK_CLOSER = hostFile("close-network");

/** Node flags that restrict a process which handles files and text from strangers. */
export function engineRights(readable: readonly string[]): string[] {
  return [
    "--permission",
    "--allow-worker",
    // SQLite ignores the permission model.
    "--no-experimental-sqlite",
    // Otherwise a signal opens the inspector.
    "--disable-sigusr1",
    "--disable-proto=delete",
    ...readable.map((file) => `--allow-fs-read=${file}`),
    ...(NODE_GUARDS_NETWORK ? [] : ["--require", NETWORK_CLOSER]),
    "--disable-warning=ExperimentalWarning",
    "--disable-warning=SecurityWarning",
  ];
}

/**
 * Starts an engine process that may read only its code and the given files: it cannot write, use the network, start
 * processes or load addons, and gets no environment variables. With a GPU it may also load Dawn, and gets the variables
 * of graphics drivers.
 * @throws ServiceError resources_exhausted or model_load_failed when the process cannot be started
 */
export function launchEngine(options: LaunchOptions): ChildProcess {
  const { runtime, wasmPath, heapLimitBytes, files, gpu, sandbox, spawn: start } = options;
  const readable = [...readableCode(), wasmPath, ...files];
  const args = [
    ...engineRights(readable),
    ...(gpu ? gpuPermissions(gpu.dawnPath) : []),
    `--max-old-space-size=${SCRIPT_HEAP_MIB}`,
    hostFile("engine-main"),
    pathToFileURL(wasmPath).href,
    String(heapLimitBytes),
    ...(gpu ? [gpu.dawnPath, String(gpu.maxWaitMs)] : []),
  ];
  const env = {
    ...(gpu ? gpuEnvironment(gpu) : {}),
    ...MINIMAL_ENVIRONMENT,
  };
  const plain: ProcessStart = { command: runtime, args, env, cwd: WORKING_FOLDER };
  const { command, args: all, ...rest } = sandbox && !gpu ? sandbox.enclose(plain, { readable }) : plain;
  try {
    return start(command, all, rest);
  } catch (error) {
    // Some failures are thrown, others are emitted by the child.
    throw spawnFailure("The model's engine", error);
  }
}

/**
 * Limit of the JavaScript heap of an engine's main thread, which only passes messages on; a request needs several times
 * its size. The model is in WebAssembly memory, which has a separate limit.
 */
const SCRIPT_HEAP_MIB = 512;

/**
 * Working folder of restricted processes. In Node 26.10 a worker started from text can read the working folder despite
 * the permission model, so it must be a folder that the process may read anyway.
 */
const WORKING_FOLDER = import.meta.dirname;

/** A module in host/: TypeScript in the repository, JavaScript in the built package. */
function hostFile(name: string): string {
  return path.join(import.meta.dirname, "host", `${name}${path.extname(import.meta.filename)}`);
}

/** Files and folders that an engine process imports from, and the package.json that Node needs to find them. */
export function readableCode(): string[] {
  const wllama = findPackage("@wllama/wllama");
  const zod = findPackage("zod");
  const webp = findPackage("@jsquash/webp");
  const folders = [
    import.meta.dirname,
    ...["async", "errors", "json", "machine", "grammar"].map((folder) =>
      path.join(import.meta.dirname, "..", folder),
    ),
    path.join(import.meta.dirname, "..", "..", "wasm"),
    path.join(wllama.folder, "esm"),
    zod.folder,
    webp.folder,
  ];
  return [
    ...wllama.links,
    ...zod.links,
    ...webp.links,
    ...folders.map((folder) => path.join(folder, path.sep)),
    path.join(wllama.folder, "package.json"),
    path.join(import.meta.dirname, "..", "launch", "skip-languages.mjs"),
    path.join(import.meta.dirname, "..", "config", `load-settings${path.extname(import.meta.filename)}`),
  ];
}

/**
 * Environment of a process that handles files and text from strangers, without the daemon's variables. Node adds the
 * variables that Windows needs to start a process.
 */
export const MINIMAL_ENVIRONMENT: Readonly<Record<string, string>> = {
  // Without it, glibc caches freed memory for each thread. Other C libraries ignore it.
  MALLOC_ARENA_MAX: "1",
};

/**
 * Additional permissions to load Dawn. Only processes that use a GPU get them, because no sandbox confines native code.
 */
export function gpuPermissions(dawnPath: string): string[] {
  return ["--allow-addons", `--allow-fs-read=${path.join(path.dirname(dawnPath), path.sep)}`];
}

/**
 * Variables that configure graphics drivers and name the folders where they cache compiled shaders. None of them holds
 * a secret.
 */
const DRIVER_VARIABLES =
  /^(VK_|MESA_|RADV_|ANV_|NVK_|TU_|LP_|GALLIUM_|LIBGL_|DRI_|__NV_|__GLX_|__EGL_|__GL_|CUDA_VISIBLE_DEVICES$|XDG_RUNTIME_DIR$|XDG_CACHE_HOME$|XDG_DATA_DIRS$|XDG_DATA_HOME$|XDG_CONFIG_DIRS$|LD_LIBRARY_PATH$|HOME$|TMPDIR$|PATH$|LOCALAPPDATA$|APPDATA$|USERPROFILE$|ProgramData$|ProgramFiles|TEMP$|TMP$)/;

function gpuEnvironment({ programCache }: EngineGpu): Record<string, string> {
  return {
    ...driverEnvironment(process.env),
    ...(programCache === undefined ? {} : programCacheVariables(programCache, process.env)),
  };
}

/** Variables of an environment that graphics drivers use. */
export function driverEnvironment(environment: NodeJS.ProcessEnv): Record<string, string> {
  const selected: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment)) {
    if (value !== undefined && DRIVER_VARIABLES.test(name)) selected[name] = value;
  }
  return selected;
}

interface InstalledPackage {
  /** Real path of the package. */
  readonly folder: string;
  /** Links that Node follows to get there; only some package managers, such as pnpm, create links. */
  readonly links: readonly string[];
}

/**
 * Finds the paths that a process must be allowed to read in order to import an installed package. The links must come
 * first among its permissions: Node 26.10 drops a permission for a link when it already has one for a path inside it.
 * @throws Error when the package is not installed
 */
export function findPackage(name: string): InstalledPackage {
  for (let above = import.meta.dirname; ; above = path.dirname(above)) {
    const found = path.join(above, "node_modules", name);
    if (existsSync(found)) return { folder: realpathSync(found), links: linksOn(found) };
    if (above === path.dirname(above)) throw new Error(`The package ${name} is not installed.`);
  }
}

/** All symbolic links in a file's path, including the file itself. */
function linksOn(file: string): string[] {
  const link = upwards(file).findLast((each) => lstatSync(each).isSymbolicLink());
  if (link === undefined) return [];
  const target = path.resolve(path.dirname(link), readlinkSync(link));
  return [link, ...linksOn(path.join(target, path.relative(link, file)))];
}

/** A path and its parent folders, the outermost last. */
function upwards(file: string): string[] {
  const parent = path.dirname(file);
  return parent === file ? [file] : [file, ...upwards(parent)];
}
