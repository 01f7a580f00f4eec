import { accessSync, constants } from "node:fs";
import path from "node:path";
import { ServiceError } from "../../errors/service-error.ts";
import { exhaustedResource } from "../../errors/exhausted-resource.ts";
import { toError } from "../../errors/to-error.ts";
import { readSystemFile } from "../../machine/system-file.ts";
import { type SpawnEngine, spawnEngine } from "../launch.ts";
import { bubblewrap } from "./bubblewrap.ts";
import { runtimeFiles } from "./runtime-files.ts";
import { SANDBOX_EXEC, sandboxExec } from "./sandbox-exec.ts";
import { tryWall } from "./try-wall.ts";
import { unshare } from "./unshare.ts";
import type { Wall, WallName } from "./wall.ts";

/** auto: the best wall that works here; require: no engine without one; off: none. */
export type SandboxMode = "auto" | "require" | "off";

/** What is known of the wall around engines. */
export interface WallState {
  readonly mode: SandboxMode;
  /** none: Node's permission model is the only one; unknown: the first engine has yet to be started. */
  readonly wall: WallName | "none" | "unknown";
  /** What it is made of, for people. */
  readonly parts: readonly string[];
  /** Why there is none, or no better one, and what to do. */
  readonly problem: string | undefined;
}

export interface SecondWallOptions {
  readonly mode: SandboxMode;
  readonly runtime?: string;
  readonly spawn?: SpawnEngine;
  readonly candidates?: () => Candidates;
}

/** Walls to try, the best one first, and what is missing for others. */
export interface Candidates {
  readonly walls: readonly Wall[];
  readonly missing: readonly string[];
}

/** Finds, by trying, what the operating system can put around engines. Tries once, and again only after a trial that the system had no room for. */
export class SecondWall {
  readonly #options: SecondWallOptions;
  #trial: Promise<Wall | undefined> | undefined;
  #state: WallState;

  constructor(options: SecondWallOptions) {
    this.#options = options;
    const { mode } = options;
    const wall = mode === "off" ? "none" : "unknown";
    const problem = mode === "off" ? "The configuration switches it off (sandbox = off)." : undefined;
    this.#state = { mode, wall, parts: [], problem };
  }

  get state(): WallState {
    return this.#state;
  }

  /**
   * The wall for engines; undefined when there is none, and need not be.
   * @throws ServiceError sandbox_unavailable when there must be one and is none
   */
  async find(): Promise<Wall | undefined> {
    if (this.#options.mode === "off") return undefined;
    this.#trial ??= this.#look();
    const wall = await this.#trial;
    if (wall || this.#options.mode === "auto") return wall;
    throw new ServiceError(
      "sandbox_unavailable",
      `The configuration requires a sandbox (sandbox = require), and none works here. ${this.#state.problem}`,
    );
  }

  async #look(): Promise<Wall | undefined> {
    const {
      mode,
      runtime = process.execPath,
      spawn = spawnEngine,
      candidates = candidatesHere,
    } = this.#options;
    const problems: string[] = [];
    try {
      const { walls, missing } = candidates();
      problems.push(...missing);
      for (const wall of walls) {
        const failure = await tryWall(wall, runtime, spawn);
        if (failure === undefined) {
          const problem = problems.length > 0 ? problems.join(" ") : undefined;
          this.#state = { mode, wall: wall.name, parts: wall.parts, problem };
          return wall;
        }
        problems.push(`${wall.name} does not work here (${failure}).`);
      }
    } catch (error) {
      // Nothing was learned about the walls: the next engine asks again.
      if (exhaustedResource(error) !== undefined) this.#trial = undefined;
      problems.push(`It could not be tried: ${toError(error).message}.`);
    }
    this.#state = { mode, wall: "none", parts: [], problem: [...problems, ...cures()].join(" ") };
    return undefined;
  }
}

/** What this system has, tried or not. */
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
          "This system has no wall that a program can put up without native code or an administrator's rights; run Daybreak in a container or a virtual machine instead.",
        ],
      };
  }
}

function candidatesOfLinux(): Candidates {
  const walls: Wall[] = [];
  const missing: string[] = [];
  const bwrap = findProgram("bwrap");
  if (bwrap === undefined) missing.push("bubblewrap, which makes the best one, is not installed.");
  else walls.push(bubblewrap({ binary: bwrap, runtimeFiles: runtimeFiles(), arch: process.arch }));
  const [unshareBinary, setpriv] = [findProgram("unshare"), findProgram("setpriv")];
  if (unshareBinary !== undefined && setpriv !== undefined) {
    walls.push(unshare({ unshare: unshareBinary, setpriv }));
  }
  return { walls, missing };
}

/** What the kernel says about why accounts may not make namespaces. */
function cures(): string[] {
  if (process.platform !== "linux") return [];
  if (kernelSetting("kernel/apparmor_restrict_unprivileged_userns") === "1") {
    return [
      "This system lets no program make namespaces that has no AppArmor profile: give bwrap one (Ubuntu: install apparmor-profiles and bubblewrap), or set kernel.apparmor_restrict_unprivileged_userns=0.",
    ];
  }
  if (kernelSetting("kernel/unprivileged_userns_clone") === "0") {
    return ["Set kernel.unprivileged_userns_clone=1 to let accounts make namespaces."];
  }
  if (kernelSetting("user/max_user_namespaces") === "0") {
    return ["Set user.max_user_namespaces above 0 to let accounts make namespaces."];
  }
  return [
    "Install bubblewrap, and in a container allow namespaces (Docker: a seccomp profile that permits unshare and mount).",
  ];
}

function kernelSetting(name: string): string | undefined {
  return readSystemFile(path.join("/proc/sys", name))?.trim();
}

/** Where systems have their programs; the daemon's own PATH may name folders that others can write. */
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
