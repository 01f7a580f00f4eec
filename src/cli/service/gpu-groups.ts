import { readFileSync } from "node:fs";

/** Groups to which Linux systems give the devices of GPUs. */
const GROUPS = ["video", "render"];

/** Those of them that this system has: systemd starts no unit that names others. */
export function gpuGroups(file = "/etc/group"): readonly string[] {
  try {
    const names = readFileSync(file, "utf8")
      .split("\n")
      .map((line) => line.split(":", 1)[0]);
    return GROUPS.filter((group) => names.includes(group));
  } catch {
    return [];
  }
}
