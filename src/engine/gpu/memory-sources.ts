import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import os from "node:os";

/** Where the operating system tells how much memory graphics cards have. No method rejects. */
export interface MemorySources {
  readonly platform: NodeJS.Platform;
  /** The machine's memory in bytes. */
  readonly machineMemory: number;
  /** Reads a text file; undefined when it cannot be read. */
  readonly read: (file: string) => Promise<string | undefined>;
  /** Lists a folder; empty when it cannot be read. */
  readonly list: (folder: string) => Promise<readonly string[]>;
  /** Output of a program; undefined when it does not exist, fails, or takes too long. */
  readonly run: (program: string, args: readonly string[]) => Promise<string | undefined>;
}

/** PowerShell takes seconds to start on a slow disk. */
const PROGRAM_DEADLINE_MS = 8000;

export const systemSources: MemorySources = {
  platform: process.platform,
  machineMemory: os.totalmem(),
  read: async (file) => {
    try {
      return await readFile(file, "utf8");
    } catch {
      return undefined; // does not exist with every driver and kernel
    }
  },
  list: async (folder) => {
    try {
      return await readdir(folder);
    } catch {
      return [];
    }
  },
  run: async (program, args) =>
    await new Promise((resolve) => {
      const options = { timeout: PROGRAM_DEADLINE_MS, windowsHide: true } as const;
      try {
        execFile(program, args, options, (error, stdout) => resolve(error ? undefined : stdout));
      } catch {
        resolve(undefined); // the process cannot be started
      }
    }),
};
