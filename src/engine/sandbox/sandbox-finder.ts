import { accessSync, constants } from "node:fs";
import path from "node:path";
import { exhaustedResource, ServiceError } from "../../errors/service-error.ts";
import { toError } from "../../errors/to-error.ts";
import { readSystemFile } from "../../machine/memory.ts";
import { type SpawnEngine, spawnEngine } from "../launch.ts";
import { bubblewrap, findRuntimeFiles, unshare } from "./bubblewrap.ts";
import { SANDBOX_EXEC, sandboxExec } from "./sandbox-exec.ts";
import { tryEngineStart } from "./try-engine-start.ts";
import type { Sandbox, SandboxName } from "./sandbox.ts";

/** auto: the best wall that works on this machine; require: engines start only inside a wall; off: no wall. */
export type SandboxMode = "auto" | "require" | "off";

/** State of the wall around engines. */
export interface SandboxState {
  readonly mode: SandboxMode;
  /** none: only Node's permission model; unknown: no engine has been started yet. */
  readonly wall: SandboxName | "none" | "unknown";
  /** What it consists of, for people. */
  readonly parts: readonly string[];
  /** Why there is no wall or no better one, and what to do. */
  readonly problem: string | undefined;
}

interface SandboxFinderOptions {
  readonly mode: SandboxMode;
  readonly runtime?: string;
  readonly spawn?: SpawnEngine;
  readonly candidates?: () => Candidates;
  /** Longest time for one wall, in milliseconds. */
  readonly trialMs?: number;
  /** Told when a wall that this machine has does not keep engines in, although none is required. */
  readonly onProblem?: (problem: string) => void;
}

/** Walls to try, best first, and what is missing for the others. */
export interface Candidates {
  readonly walls: readonly Sandbox[];
  readonly missing: readonly string[];
}

/**
 * Finds the best wall that works on this machine by trying them once. Tries again only after the system lacked the
 * resources for a trial.
 */
export class SandboxFinder {
  readonly #options: SandboxFinderOptions;
  #trial: Promise<Sandbox | undefined> | undefined;
  #state: SandboxState;

  constructor(options: SandboxFinderOptions) {
    this.#options = options;
    const { mode } = options;
    const wall = mode === "off" ? "none" : "unknown";
    const problem = mode === "off" ? "The configuration turns it off (sandbox = off)." : undefined;
    this.#state = { mode, wall, parts: [], problem };
  }

  get state(): SandboxState {
    return this.#state;
  }

  /**
   * Returns the wall for engines; undefined when there is none and none is required.
   * @throws ServiceError sandbox_unavailable when one is required and none works
   */
  async find(): Promise<Sandbox | undefined> {
    if (this.#options.mode === "off") return undefined;
    this.#trial ??= this.#look();
    const wall = await this.#trial;
    if (wall || this.#options.mode === "auto") return wall;
    throw new ServiceError(
      "sandbox_unavailable",
      `The configuration requires a sandbox (sandbox = require), but none works here. ${this.#state.problem}`,
    );
  }

  async #look(): Promise<Sandbox | undefined> {
    const {
      mode,
      runtime = process.execPath,
      spawn = spawnEngine,
      candidates = candidatesHere,
      trialMs,
      onProblem,
    } = this.#options;
    const problems: string[] = [];
    let wasTried = false;
    let isTriedAgain = false;
    try {
      const { walls, missing } = candidates();
      problems.push(...missing);
      for (const wall of walls) {
        wasTried = true;
        const failure = await tryEngineStart({ runtime, wall, spawn, deadlineMs: trialMs });
        if (failure === undefined) {
          const problem = problems.length > 0 ? problems.join(" ") : undefined;
          this.#state = { mode, wall: wall.name, parts: wall.parts, problem };
          return wall;
        }
        problems.push(`${wall.name} does not work here (${failure}).`);
      }
    } catch (error) {
      // A lack of resources says nothing about the walls: the next engine tries again.
      isTriedAgain = exhaustedResource(error) !== undefined;
      if (isTriedAgain) this.#trial = undefined;
      problems.push(`The sandbox could not be tested: ${toError(error).message}.`);
    }
    const advice = isTriedAgain ? ["The next engine tries again."] : namespaceAdvice();
    const problem = [...problems, ...advice].join(" ");
    this.#state = { mode, wall: "none", parts: [], problem };
    if (mode === "auto" && wasTried) onProblem?.(problem);
    return undefined;
  }
}

/** Walls that this system has, not tried yet. */
export function candidatesHere(): Candidates {
  switch (process.platform) {
    case "linux":
      return candidatesOfLinux();
    case "darwin":
      return { walls: isExecutable(SANDBOX_EXEC) ? [sandboxExec()] : [], missing: [] };
    default:
      return {
        walls: [],
        missing: [
          "This system offers no sandbox that works without native code or administrator rights; run Daybreak in a container or a virtual machine instead.",
        ],
      };
  }
}

function candidatesOfLinux(): Candidates {
  const walls: Sandbox[] = [];
  const missing: string[] = [];
  const bwrap = findProgram("bwrap");
  if (bwrap === undefined) missing.push("bubblewrap, which provides the best sandbox, is not installed.");
  else walls.push(bubblewrap({ binary: bwrap, runtimeFiles: findRuntimeFiles(), arch: process.arch }));
  const [unshareBinary, setpriv] = [findProgram("unshare"), findProgram("setpriv")];
  if (unshareBinary !== undefined && setpriv !== undefined) {
    walls.push(unshare({ unshare: unshareBinary, setpriv }));
  }
  return { walls, missing };
}

/** What to do when the kernel's settings forbid namespaces. */
function namespaceAdvice(): string[] {
  if (process.platform !== "linux") return [];
  if (kernelSetting("kernel/apparmor_restrict_unprivileged_userns") === "1") {
    return [
      "This system allows namespaces only for programs with an AppArmor profile: add one for bwrap (Ubuntu: install apparmor-profiles and bubblewrap), or set kernel.apparmor_restrict_unprivileged_userns=0.",
    ];
  }
  if (kernelSetting("kernel/unprivileged_userns_clone") === "0") {
    return ["Set kernel.unprivileged_userns_clone=1 to allow user namespaces."];
  }
  if (kernelSetting("user/max_user_namespaces") === "0") {
    return ["Set user.max_user_namespaces above 0 to allow user namespaces."];
  }
  return [
    "Install bubblewrap; in a container, allow namespaces (Docker: use a seccomp profile that permits unshare and mount).",
  ];
}

function kernelSetting(name: string): string | undefined {
  return readSystemFile(path.join("/proc/sys", name))?.trim();
}

/** System folders; the daemon's PATH may contain folders that others can write to. */
const PROGRAM_FOLDERS = ["/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin"];

function findProgram(name: string): string | undefined {
  return PROGRAM_FOLDERS.map((folder) => path.join(folder, name)).find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
