import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { machineProcessors } from "../../../src/engine/machine-limits.ts";

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "processors-"));
afterAll(() => fs.rmSync(folder, { recursive: true }));

let machines = 0;

/** A folder with files like those of Linux under /proc and /sys. */
function machine(files: Readonly<Record<string, string>>): string {
  const root = path.join(folder, String(machines++));
  for (const [name, content] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    fs.writeFileSync(path.join(root, name), `${content}\n`);
  }
  return root;
}

const siblings = (lists: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    lists.map((list, cpu) => [`sys/devices/system/cpu/cpu${cpu}/topology/thread_siblings_list`, list]),
  );

describe("the processors of a machine", () => {
  it("are those that Node may use without limits", () => {
    expect(machineProcessors(machine({})).usable).toBe(os.availableParallelism());
  });

  it.each([
    ["version 2, in a container", { "proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "150000 100000" }],
    [
      "version 2, of a service",
      { "proc/self/cgroup": "0::/a.service", "sys/fs/cgroup/a.service/cpu.max": "100000 100000" },
    ],
    [
      "version 1",
      {
        "proc/self/cgroup": "9:memory:/x\n4:cpu,cpuacct:/of-the-host",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
      },
    ],
  ])("are limited by the quota of control groups: %s", (_, files) => {
    expect(machineProcessors(machine(files)).usable).toBe(1);
  });

  it.each([
    ["version 2", { "proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "max 100000" }],
    [
      "version 1",
      {
        "proc/self/cgroup": "4:cpu:/",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
      },
    ],
  ])("are all without a quota of control groups: %s", (_, files) => {
    expect(machineProcessors(machine(files)).usable).toBe(os.availableParallelism());
  });

  it("share the cores that the system reports", () => {
    expect(machineProcessors(machine(siblings(["0,2", "1,3", "0,2", "1,3"]))).cores).toBe(2);
    expect(machineProcessors(machine(siblings(["0", "1", "2", "3"]))).cores).toBe(4);
  });
});
