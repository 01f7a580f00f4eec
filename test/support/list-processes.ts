import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

interface RunningProcess {
  readonly pid: number;
  readonly parent: number;
  /** Words of the command line, one space between each two of them. */
  readonly commandLine: string;
}

/** All processes that this account may see, zombies aside. Linux needs no program for it, but {@link PROC}. */
export function listProcesses(): RunningProcess[] {
  return process.platform === "linux" ? processesInProc() : processesOfPs();
}

function processesInProc(): RunningProcess[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    try {
      // After the name in brackets, which may hold any characters: the state and the parent.
      const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
        .replace(/^.*\) /s, "")
        .split(" ");
      const commandLine = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trimEnd();
      return fields[0] === "Z" ? [] : [{ pid: Number(pid), parent: Number(fields[1]), commandLine }];
    } catch {
      // It has ended meanwhile.
      return [];
    }
  });
}

function processesOfPs(): RunningProcess[] {
  const options = { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 } as const;
  const rows = execFileSync("ps", ["-A", "-ww", "-o", "pid=,ppid=,args="], options).split("\n");
  return rows.flatMap((row) => {
    const [, pid, parent, commandLine = ""] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(row) ?? [];
    return pid === undefined ? [] : [{ pid: Number(pid), parent: Number(parent), commandLine }];
  });
}
