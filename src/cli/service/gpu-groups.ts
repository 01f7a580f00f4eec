import { readFileSync } from "node:fs";

/** Groups to which Linux systems give the devices of GPUs. */
const GROUPS = ["video", "render"];

/** Those of them that this system has: systemd starts no unit that names others. */
export function gpuGroups(file = "/etc/group"): readonly string[] {
  try {
    const lines = readFileSync(file, "utf8").split("\n");
    return GROUPS.filter((group) => lines.some((line) => line.startsWith(`${group}:`)));
  } catch {
    return [];
  }
}
