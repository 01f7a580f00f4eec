import { expect, test } from "vitest";
import { listProcesses } from "./list-processes.ts";
import { both, unless } from "./need.ts";
import { PROC } from "./proc.ts";

const LISTED = both(unless(process.platform !== "win32", "Windows lists processes in another way"), PROC);

test.skipIf(LISTED.isMissing)(
  `a process is listed with its parent and its command line${LISTED.note}`,
  () => {
    const own = listProcesses().find(({ pid }) => pid === process.pid);
    expect(own).toMatchObject({ parent: process.ppid, commandLine: expect.stringContaining("node") });
  },
);
