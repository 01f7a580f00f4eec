import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import os from "node:os";

/** Where the operating system says how much memory its graphics cards have. Nothing here rejects. */
export interface MemorySources {
  readonly platform: NodeJS.Platform;
  /** Bytes of the machine's own memory. */
  readonly machineMemory: number;
  /** A file's text; undefined when it cannot be read. */
  readonly read: (file: string) => Promise<string | undefined>;
  /** The names in a folder; none when it cannot be read. */
  readonly list: (folder: string) => Promise<readonly string[]>;
  /** What a program prints; undefined when it is not there, fails, or takes too long. */
  readonly run: (program: string, args: readonly string[]) => Promise<string | undefined>;
}

/** PowerShell takes a second to start, on a slow disk several. */
const PROGRAM_DEADLINE_MS = 8000;

export const systemSources: MemorySources = {
  platform: process.platform,
  machineMemory: os.totalmem(),
  read: async (file) => {
    try {
      return await readFile(file, "utf8");
    } catch {
      return undefined; // another driver, another kernel: the file is not there
    }
  },
  list: async (folder) => {
    try {
      return await readdir(folder);
    } catch {
      return []; // the same
    }
  },
  run: async (program, args) =>
    await new Promise((resolve) => {
      const options = { timeout: PROGRAM_DEADLINE_MS, windowsHide: true } as const;
      try {
        execFile(program, args, options, (error, stdout) => resolve(error ? undefined : stdout));
      } catch {
        resolve(undefined); // the system starts no process just now
      }
    }),
};
