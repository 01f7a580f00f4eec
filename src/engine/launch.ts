import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, lstatSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import path from "node:path";
import { Writable } from "node:stream";
import { exhaustedResource, isSystemError, ServiceError } from "../errors/service-error.ts";
import { FIRST_INPUT_FD } from "./channel/parent-channel.ts";
import { programCacheVariables } from "./gpu/program-cache.ts";
import type { ProcessStart, Sandbox } from "./sandbox/sandboxes.ts";

/** Starts a process with the pipes of a {@link ChildChannel}. */
export type SpawnEngine = (
  command: string,
  args: readonly string[],
  options: SpawnEngineOptions,
) => ChildProcess;

type SpawnEngineOptions = Pick<ProcessStart, "env" | "cwd" | "inputs">;

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

interface RestrictedProcess {
  /** Modules that the process loads by their path, in addition to imports; named like the entry. */
  readonly modules?: readonly string[];
  /** Files that the process may read in addition to its code. */
  readonly files?: readonly string[];
  readonly args?: readonly string[];
  /** Absent: the process uses no GPU. */
  readonly gpu?: ProcessGpu | undefined;
  /** Not used with a GPU, because drivers need more access. */
  readonly sandbox?: Sandbox | undefined;
}

interface ProcessGpu {
  /** Entry file of Dawn, a native addon. */
  readonly dawnPath: string;
  /** Folder for the driver's cache of compiled shaders; absent: the driver's default. */
  readonly programCache?: string | undefined;
}

/** True if Node's permission model restricts the network, as it does from version 25 on. */
const RESTRICTS_NETWORK = process.allowedNodeEnvironmentFlags.has("--allow-net");

/** Module that disables the network where Node's permission model does not. */
const CLOSE_NETWORK = "host/close-network";

/** Limit of the JavaScript heap. Weights and models are in WebAssembly memory, which has a separate limit. */
const SCRIPT_HEAP_MIB = 512;

/**
 * Returns the start of a process for files and text of unknown origin. It may only read its code and the given files: it
 * cannot write, use the network, start processes or load addons, and gets no environment variables. With a GPU it may also
 * load Dawn, and gets the variables of graphics drivers.
 * @param entry module of the process, as a path in this folder without its ending
 */
export function restrictedProcess(
  entry: string,
  { modules = [], files = [], args = [], gpu, sandbox }: RestrictedProcess,
): ProcessStart {
  const closers = RESTRICTS_NETWORK ? [] : [CLOSE_NETWORK];
  const readable = [...readableCode([entry, ...modules, ...closers].map(moduleFile)), ...files];
  const start: ProcessStart = {
    command: process.execPath,
    args: [
      "--permission",
      "--allow-worker",
      // SQLite ignores the permission model.
      "--no-experimental-sqlite",
      // Otherwise a signal opens the inspector.
      "--disable-sigusr1",
      "--disable-proto=delete",
      ...readable.map((file) => `--allow-fs-read=${file}`),
      ...(gpu
        ? ["--allow-addons", `--allow-fs-read=${path.join(path.dirname(gpu.dawnPath), path.sep)}`]
        : []),
      ...closers.flatMap((closer) => ["--require", moduleFile(closer)]),
      "--disable-warning=ExperimentalWarning",
      "--disable-warning=SecurityWarning",
      `--max-old-space-size=${SCRIPT_HEAP_MIB}`,
      moduleFile(entry),
      ...args,
    ],
    env: { ...(gpu && gpuEnvironment(gpu)), ...MINIMAL_ENVIRONMENT },
    // In Node 26.10 a worker started from text can read the working folder despite the permission model, so this must be
    // a folder that the process may read anyway.
    cwd: path.dirname(moduleFile(entry)),
  };
  return sandbox && !gpu ? sandbox.enclose(start, readable) : start;
}

/**
 * Starts a restricted process.
 * @param name what it is called in errors
 * @throws ServiceError resources_exhausted or model_load_failed if it cannot be started
 */
export function startRestricted(
  name: string,
  { command, args, ...options }: ProcessStart,
  spawnProcess: SpawnEngine = spawnEngine,
): ChildProcess {
  try {
    return spawnProcess(command, args, options);
  } catch (error) {
    // Some failures are thrown, others are emitted by the child.
    throw spawnFailure(name, error);
  }
}

/** File of a module in this folder: TypeScript in the repository, JavaScript in the built package. */
function moduleFile(name: string): string {
  return path.join(import.meta.dirname, `${name}${path.extname(import.meta.filename)}`);
}

/** Statements that load a module, and dynamic imports. Imports of types load nothing. */
const IMPORTS = /^(?:import|export)\s+(?!type\b)(?:[\w$*{},\s]+?\sfrom\s+)?"([^"]+)"|\bimport\("([^"]+)"\)/gm;

/**
 * Paths that a process must be allowed to read in order to load modules: the folders of all modules that they import,
 * and the packages. Links to packages come first: Node 26.10 drops a permission for a link if it already has one for a
 * path inside it.
 */
function readableCode(entries: readonly string[]): string[] {
  const modules = new Set(entries);
  const packages = new Set<string>();
  for (const file of modules) {
    for (const [, statement, dynamic] of readFileSync(file, "utf8").matchAll(IMPORTS)) {
      const name = statement ?? dynamic ?? "";
      if (name.startsWith(".")) modules.add(path.resolve(path.dirname(file), name));
      else if (!name.startsWith("node:")) packages.add(/^(@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name);
    }
  }
  const installed = [...packages].map(findPackage);
  const folders = new Set([...modules].map((file) => path.join(path.dirname(file), path.sep)));
  return [
    ...installed.flatMap(({ links }) => links),
    ...[...folders].filter(
      (folder) => ![...folders].some((other) => other !== folder && folder.startsWith(other)),
    ),
    ...installed.map(({ folder }) => path.join(folder, path.sep)),
  ];
}

/** Variables of every restricted process. Node adds those that Windows needs to start a process. */
const MINIMAL_ENVIRONMENT: Readonly<Record<string, string>> = {
  // Without it, glibc caches freed memory for each thread. Other C libraries ignore it.
  MALLOC_ARENA_MAX: "1",
};

/**
 * Variables that configure graphics drivers and name the folders where they cache compiled shaders. None of them holds
 * a secret.
 */
const DRIVER_VARIABLES =
  /^(VK_|MESA_|RADV_|ANV_|NVK_|TU_|LP_|GALLIUM_|LIBGL_|DRI_|__NV_|__GLX_|__EGL_|__GL_|CUDA_VISIBLE_DEVICES$|XDG_RUNTIME_DIR$|XDG_CACHE_HOME$|XDG_DATA_DIRS$|XDG_DATA_HOME$|XDG_CONFIG_DIRS$|LD_LIBRARY_PATH$|HOME$|TMPDIR$|PATH$|LOCALAPPDATA$|APPDATA$|USERPROFILE$|ProgramData$|ProgramFiles|TEMP$|TMP$)/;

function gpuEnvironment({ programCache }: ProcessGpu): Record<string, string> {
  const variables = Object.entries(process.env).flatMap(([name, value]) =>
    value !== undefined && DRIVER_VARIABLES.test(name) ? [[name, value] as const] : [],
  );
  return {
    ...Object.fromEntries(variables),
    ...(programCache === undefined ? {} : programCacheVariables(programCache, process.env)),
  };
}

interface InstalledPackage {
  /** Real path of the package. */
  readonly folder: string;
  /** Links that Node follows to get there; only some package managers, such as pnpm, create links. */
  readonly links: readonly string[];
}

/**
 * Finds an installed package.
 * @throws Error if the package is not installed
 */
function findPackage(name: string): InstalledPackage {
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
