import os from "node:os";
import path from "node:path";
import { cgroupLimits, type MemoryLimit } from "./cgroup-limits.ts";
import { residentBytes } from "./process-memory.ts";
import { readSystemFile } from "./system-file.ts";

const KIB = 1024;
const MACHINE = "this machine";

/**
 * All memory limits of this process and its children: the machine's, and those of its control groups. Reads a handful of
 * small files.
 * @param root the folder that contains /proc and /sys
 */
export function memoryLimits(root = "/"): readonly MemoryLimit[] {
  return [machineLimit(root), ...cgroupLimits(root)];
}

/** Total memory in bytes: the machine's, or a control group's limit. */
export function memoryTotal(limits: readonly MemoryLimit[] = memoryLimits()): number {
  return Math.min(os.totalmem(), ...limits.map(({ bytes }) => bytes));
}

/** Includes swap: a load that needs it is slow, but does not end other programs. */
function machineLimit(root: string): MemoryLimit {
  const text = readSystemFile(path.join(root, "proc/meminfo")) ?? "";
  const read = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(text)?.[1]) * KIB;
  const bytes = read("MemTotal") + read("SwapTotal");
  const usedBytes = bytes - read("MemAvailable") - read("SwapFree");
  if (Number.isFinite(usedBytes)) return { name: MACHINE, bytes, usedBytes };
  // Other systems report no suitable figure: their free memory does not include cached files.
  return { name: MACHINE, bytes: os.totalmem(), usedBytes: residentBytes() };
}
