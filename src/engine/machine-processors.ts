import { globSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { readSystemFile } from "../machine/system-file.ts";

/** What a daemon may compute on. */
export interface Processors {
  /** Logical processors, as far as affinity and a container's quota allow. */
  readonly usable: number;
  /** Physical cores of the machine, or a guess: two logical processors each, which is what most have. */
  readonly cores: number;
}

/**
 * Counts the processors. Node knows about affinity; a quota of control groups it does not see on every system (with
 * version 1 of them it reports the machine's), so it is read here.
 * @param root - folder in which /proc and /sys are looked for
 */
export function machineProcessors(root = "/"): Processors {
  const available = os.availableParallelism();
  const quota = cgroupQuota(root) ?? available;
  return {
    usable: Math.max(1, Math.min(available, Math.floor(quota))),
    cores: linuxCores(root) ?? Math.max(1, Math.floor((os.cpus().length || available) / 2)),
  };
}

/** Processors' worth of time that a control group grants, if it limits it; see cgroups(7) for the files. */
function cgroupQuota(root: string): number | undefined {
  const groups = readSystemFile(path.join(root, "proc/self/cgroup"));
  if (groups === undefined) return undefined;
  const quotas = groups
    .trim()
    .split("\n")
    .flatMap((line) => {
      const [, controllers = "", group = "/"] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
      const isSecond = controllers === "";
      if (!isSecond && !controllers.split(",").includes("cpu")) return [];
      const folder = path.join(root, "sys/fs/cgroup", controllers);
      // Inside a container the group's path may be that of the host; its files are then at the top.
      return [path.join(folder, group), folder].map(isSecond ? secondVersionQuota : firstVersionQuota);
    })
    .filter((quota) => quota !== undefined);
  return quotas.length > 0 ? Math.min(...quotas) : undefined;
}

function secondVersionQuota(folder: string): number | undefined {
  const [quota, period] = numbersIn(path.join(folder, "cpu.max"));
  return quota !== undefined && period ? quota / period : undefined;
}

function firstVersionQuota(folder: string): number | undefined {
  const [quota] = numbersIn(path.join(folder, "cpu.cfs_quota_us"));
  const [period] = numbersIn(path.join(folder, "cpu.cfs_period_us"));
  return quota !== undefined && quota > 0 && period ? quota / period : undefined;
}

/** Numbers that a file begins with; none where it says "max" or is not there. */
function numbersIn(file: string): number[] {
  const numbers = readSystemFile(file)?.trim().split(/\s+/).map(Number) ?? [];
  return numbers.every(Number.isFinite) ? numbers : [];
}

/** Logical processors that share a core name the same list of siblings. */
function linuxCores(root: string): number | undefined {
  const lists = globSync("sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list", { cwd: root });
  const cores = new Set(lists.map((file) => readSystemFile(path.join(root, file))?.trim() ?? file));
  return cores.size > 0 ? cores.size : undefined;
}
