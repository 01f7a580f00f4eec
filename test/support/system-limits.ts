import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import path from "node:path";

/** Commands that start a daemon where the system gives it less; see DaemonOptions.through. */

/** Runs what follows where this folder is another file system; undefined where the system does not allow that. */
function inMountNamespace(script: string, folder: string): readonly string[] | undefined {
  const args = ["--user", "--map-root-user", "--mount", "sh", "-ec"];
  if (spawnSync("unshare", [...args, "mount -t tmpfs none /mnt", "sh"]).status !== 0) return undefined;
  return ["unshare", ...args, `${script}\nshift\nexec "$@"`, "sh", folder];
}

/** Mounts a full disk on the folder. */
export function onFullDisk(folder: string): readonly string[] | undefined {
  const script = 'mount -t tmpfs -o size=64k none "$1"\ncat /dev/zero >"$1/filler" 2>/dev/null || true';
  return inMountNamespace(script, folder);
}

/** The folder, with all that is in it, cannot be written to. */
export function onReadOnlyDisk(folder: string): readonly string[] | undefined {
  return inMountNamespace('mount --bind "$1" "$1"\nmount -o remount,bind,ro "$1"', folder);
}

/** Hides /proc. */
export function withoutProc(): readonly string[] | undefined {
  return inMountNamespace("mount -t tmpfs none /proc", "/proc");
}

/** There is no network but this machine's own address of IPv6; undefined where the system does not allow that. */
export function onIpv6Alone(): readonly string[] | undefined {
  const script =
    "ip link set lo up && ip addr del 127.0.0.1/8 dev lo && ip -6 addr show dev lo | grep -q ::1";
  const args = ["--user", "--map-root-user", "--net", "sh", "-ec"];
  if (spawnSync("unshare", [...args, script]).status !== 0) return undefined;
  return ["unshare", ...args, `${script}\nexec "$@"`, "sh"];
}

interface MemoryGroup {
  readonly through: readonly string[];
  /** To be called when its processes have ended. */
  remove(): void;
}

const CGROUPS = "/sys/fs/cgroup";

/** A control group with this much memory; undefined where this user may make none. */
export function memoryGroup(bytes: number): MemoryGroup | undefined {
  const isV2 = existsSync(path.join(CGROUPS, "cgroup.controllers"));
  const folder = path.join(CGROUPS, isV2 ? "" : "memory", `daybreak-test-${process.pid}`);
  try {
    mkdirSync(folder);
    writeFileSync(path.join(folder, isV2 ? "memory.max" : "memory.limit_in_bytes"), String(bytes));
  } catch {
    if (existsSync(folder)) rmdirSync(folder);
    return undefined;
  }
  return {
    through: ["sh", "-ec", 'echo $$ >"$0/cgroup.procs"\nexec "$@"', folder],
    remove: () => rmdirSync(folder),
  };
}
