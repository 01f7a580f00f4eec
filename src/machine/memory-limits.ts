import os from "node:os";
import path from "node:path";
import { cgroupLimits, type MemoryLimit } from "./cgroup-limits.ts";
import { residentBytes } from "./process-memory.ts";
import { readSystemFile } from "./system-file.ts";

const KIB = 1024;
const MACHINE = "this machine";

/**
 * All that bounds the memory of this process and of those that it starts: the machine, and the control groups around
 * it. Reads a handful of small files.
 * @param root the folder in which /proc and /sys lie
 */
export function memoryLimits(root = "/"): readonly MemoryLimit[] {
  return [machineLimit(root), ...cgroupLimits(root)];
}

/** Bytes that there are at all: the machine's, or fewer where a control group allows fewer. */
export function memoryTotal(limits: readonly MemoryLimit[] = memoryLimits()): number {
  return Math.min(os.totalmem(), ...limits.map(({ bytes }) => bytes));
}

/** With the swap space: a load that has to use it is slow, but none that ends the machine's programs. */
function machineLimit(root: string): MemoryLimit {
  const text = readSystemFile(path.join(root, "proc/meminfo")) ?? "";
  const read = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(text)?.[1]) * KIB;
  const bytes = read("MemTotal") + read("SwapTotal");
  const usedBytes = bytes - read("MemAvailable") - read("SwapFree");
  if (Number.isFinite(usedBytes)) return { name: MACHINE, bytes, usedBytes };
  // Others than Linux tell no figure that is fit for this: memory that they call free leaves out cached files.
  return { name: MACHINE, bytes: os.totalmem(), usedBytes: residentBytes() };
}
