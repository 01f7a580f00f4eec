import { accessSync, constants } from "node:fs";
import path from "node:path";
import { exhaustedResource, ServiceError, toError } from "../../errors/service-error.ts";
import { readSystemFile } from "../../machine/memory.ts";
import { type SpawnEngine, spawnEngine } from "../launch.ts";
import { tryEngineStart } from "./try-engine-start.ts";
import {
  bubblewrap,
  findRuntimeFiles,
  type Sandbox,
  SANDBOX_EXEC,
  sandboxExec,
  type SandboxName,
  unshare,
} from "./sandboxes.ts";

/** auto: the best sandbox that works on this machine; require: engines start only inside a sandbox; off: no sandbox. */
export type SandboxMode = "auto" | "require" | "off";

/** State of the sandbox around engines, with the fields of /api/system/status. */
export interface SandboxState {
  readonly mode: SandboxMode;
  /** Name of the sandbox; none: only Node's permission model; unknown: not tried yet. */
  readonly wall: SandboxName | "none" | "unknown";
  readonly parts: readonly string[];
  /** Explains why there is no sandbox or no better one, and what to do. */
  readonly problem: string | undefined;
}

interface SandboxFinderOptions {
  readonly mode: SandboxMode;
  readonly spawn?: SpawnEngine;
  readonly candidates?: () => Candidates;
  /** Longest trial of one sandbox, in milliseconds. */
  readonly trialMs?: number;
  /** Called when no sandbox works, although the machine has one; not when a sandbox is required. */
  readonly onProblem?: (problem: string) => void;
}

/** Sandboxes to try, best first, and explanations of which programs are missing for others. */
export interface Candidates {
  readonly sandboxes: readonly Sandbox[];
  readonly missing: readonly string[];
}

/**
 * Finds the best sandbox that works on this machine by trying them once. Tries again only after the system lacked the
 * resources for a trial.
 */
export class SandboxFinder {
  readonly #options: SandboxFinderOptions;
  #trial: Promise<Sandbox | undefined> | undefined;
  state: SandboxState;

  constructor(options: SandboxFinderOptions) {
    this.#options = options;
    const { mode } = options;
    const initial = mode === "off" ? "none" : "unknown";
    const problem = mode === "off" ? "The configuration turns it off (sandbox = off)." : undefined;
    this.state = { mode, wall: initial, parts: [], problem };
  }

  /**
   * Returns the sandbox for engines; undefined when there is none and none is required.
   * @throws ServiceError sandbox_unavailable when one is required and none works
   */
  async find(): Promise<Sandbox | undefined> {
    if (this.#options.mode === "off") return undefined;
    this.#trial ??= this.#tryCandidates();
    const sandbox = await this.#trial;
    if (sandbox || this.#options.mode === "auto") return sandbox;
    throw new ServiceError(
      "sandbox_unavailable",
      `The configuration requires a sandbox (sandbox = require), but none works here. ${this.state.problem}`,
    );
  }

  async #tryCandidates(): Promise<Sandbox | undefined> {
    const { mode, spawn = spawnEngine, candidates = findCandidates, trialMs, onProblem } = this.#options;
    const problems: string[] = [];
    let wasTried = false;
    let willRetry = false;
    try {
      const { sandboxes, missing } = candidates();
      problems.push(...missing);
      for (const sandbox of sandboxes) {
        wasTried = true;
        const failure = await tryEngineStart({ sandbox, spawn, deadlineMs: trialMs });
        if (failure === undefined) {
          const problem = problems.length > 0 ? problems.join(" ") : undefined;
          this.state = { mode, wall: sandbox.name, parts: sandbox.parts, problem };
          return sandbox;
        }
        problems.push(`${sandbox.name} does not work here (${failure}).`);
      }
    } catch (error) {
      // A lack of resources says nothing about the sandboxes: the next engine tries again.
      willRetry = exhaustedResource(error) !== undefined;
      if (willRetry) this.#trial = undefined;
      problems.push(`The sandbox could not be tested: ${toError(error).message}.`);
    }
    const advice = willRetry ? ["The next engine tries again."] : namespaceAdvice();
    const problem = [...problems, ...advice].join(" ");
    this.state = { mode, wall: "none", parts: [], problem };
    if (mode === "auto" && wasTried) onProblem?.(problem);
    return undefined;
  }
}

/** Sandboxes that are installed on this system, not tried yet. */
export function findCandidates(): Candidates {
  switch (process.platform) {
    case "linux":
      return linuxCandidates();
    case "darwin":
      return { sandboxes: isExecutable(SANDBOX_EXEC) ? [sandboxExec()] : [], missing: [] };
    default:
      return {
        sandboxes: [],
        missing: [
          "This system offers no sandbox that works without native code or administrator rights; run Daybreak in a container or a virtual machine instead.",
        ],
      };
  }
}

function linuxCandidates(): Candidates {
  const sandboxes: Sandbox[] = [];
  const missing: string[] = [];
  const bwrap = findProgram("bwrap");
  if (bwrap === undefined) missing.push("bubblewrap, which provides the best sandbox, is not installed.");
  else sandboxes.push(bubblewrap({ binary: bwrap, runtimeFiles: findRuntimeFiles(), arch: process.arch }));
  const [unshareBinary, setpriv] = [findProgram("unshare"), findProgram("setpriv")];
  if (unshareBinary !== undefined && setpriv !== undefined) {
    sandboxes.push(unshare({ unshare: unshareBinary, setpriv }));
  }
  return { sandboxes, missing };
}

/** Advice for kernel settings that forbid namespaces. */
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

/** Folders for programs; the daemon's PATH may contain folders that other users can write to. */
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
