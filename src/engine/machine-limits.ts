import { globSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { ServiceError } from "../errors/service-error.ts";
import { readSystemFile } from "../machine/memory.ts";
import type { UserLimits } from "../machine/user-limits.ts";
import type { MemoryEstimate } from "./estimate-memory.ts";

export interface Processors {
  /** Logical processors that affinity and a container's quota allow. */
  readonly usable: number;
  /** Physical cores of the machine; if unknown, half of the logical processors. */
  readonly cores: number;
}

/**
 * Counts the processors. Node respects affinity, but not the quotas of cgroups version 1.
 * @param root folder that contains proc and sys
 */
export function machineProcessors(root = "/"): Processors {
  const available = os.availableParallelism();
  const quota = cgroupQuota(root) ?? available;
  return {
    usable: Math.max(1, Math.min(available, Math.floor(quota))),
    cores: linuxCores(root) ?? Math.max(1, Math.floor((os.cpus().length || available) / 2)),
  };
}

/** CPU quota of this process's cgroups, in processors; undefined without a limit. See cgroups(7) for the files. */
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
      // Inside a container the group's path may be the host's; the files are then at the root.
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

/** The numbers in a file; empty when it says "max" or does not exist. */
function numbersIn(file: string): number[] {
  const numbers = readSystemFile(file)?.trim().split(/\s+/).map(Number) ?? [];
  return numbers.every(Number.isFinite) ? numbers : [];
}

/** Counts cores by their lists of siblings: logical processors of the same core have the same list. */
function linuxCores(root: string): number | undefined {
  const lists = globSync("sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list", { cwd: root });
  const cores = new Set(lists.map((file) => readSystemFile(path.join(root, file))?.trim() ?? file));
  return cores.size > 0 ? cores.size : undefined;
}

const GIB = 1024 ** 3;

/**
 * Address space that an engine reserves, nearly all of it unused: V8 surrounds a 64-bit WebAssembly memory with guard
 * pages. The size of the heap does not matter.
 */
const ADDRESS_SPACE_BYTES = 43 * GIB;

/** Writable memory that V8 reserves besides the heap, nearly all of it unused. */
const DATA_BASE_BYTES = 1.25 * GIB;

/** @throws ServiceError insufficient_memory if a ulimit is too low for an engine; the message names it */
export function checkUserLimits(
  { heapBytes }: Pick<MemoryEstimate, "heapBytes">,
  { addressSpaceBytes = Infinity, dataBytes = Infinity }: UserLimits,
): void {
  const data = DATA_BASE_BYTES + heapBytes;
  if (addressSpaceBytes < ADDRESS_SPACE_BYTES) {
    throw tooLow("address space, most of it unused", ADDRESS_SPACE_BYTES, addressSpaceBytes, "-v");
  }
  if (dataBytes < data) throw tooLow("writable memory, part of it unused", data, dataBytes, "-d");
}

function tooLow(what: string, needed: number, limit: number, flag: string): ServiceError {
  return new ServiceError(
    "insufficient_memory",
    `An engine reserves about ${inGiB(needed)} of ${what}, but the limit is ${inGiB(limit)} (ulimit ${flag}). Run "ulimit ${flag} unlimited" before you start the daemon; models.memory_budget still limits the memory that models actually use.`,
  );
}

function inGiB(bytes: number): string {
  return `${(bytes / GIB).toFixed(1)} GiB`;
}
