import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { memoryLimits, memoryTotal, residentBytes } from "../../../src/machine/memory.ts";
import { userLimits } from "../../../src/machine/user-limits.ts";

const MIB = 1024 * 1024;
const NO_LIMIT = "9223372036854771712";

let root: string;
beforeEach(() => {
  root = mkdtempSync(path.join(os.tmpdir(), "daybreak-limits-"));
});
afterEach(() => rmSync(root, { recursive: true }));

function write(files: Readonly<Record<string, string | number>>): void {
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(root, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, `${text}\n`);
  }
}

const MEMINFO =
  "MemTotal: 8388608 kB\nMemFree: 1 kB\nMemAvailable: 4194304 kB\nSwapTotal: 1048576 kB\nSwapFree: 524288 kB";

describe("the limits of memory", () => {
  test("include the machine's with swap, and its memory in use that cannot be reclaimed", () => {
    write({ "proc/meminfo": MEMINFO });
    expect(memoryLimits(root)).toEqual([
      { name: "this machine", bytes: 9216 * MIB, usedBytes: (9216 - 4096 - 512) * MIB },
    ]);
  });

  test("include those of every control group of the process (version 2)", () => {
    write({
      "proc/meminfo": MEMINFO,
      "proc/self/cgroup": "0::/outer/inner",
      "proc/self/mountinfo": "30 20 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw",
      "sys/fs/cgroup/outer/memory.max": 300 * MIB,
      "sys/fs/cgroup/outer/memory.high": "max",
      "sys/fs/cgroup/outer/memory.current": 200 * MIB,
      "sys/fs/cgroup/outer/memory.stat": `anon 1\ninactive_file ${30 * MIB}\nactive_file ${20 * MIB}`,
      "sys/fs/cgroup/outer/inner/memory.max": "max",
      "sys/fs/cgroup/outer/inner/memory.high": 250 * MIB,
      "sys/fs/cgroup/outer/inner/memory.current": 100 * MIB,
    });
    const [, ...groups] = memoryLimits(root);
    expect(groups).toEqual([
      {
        name: "this container or control group (/sys/fs/cgroup/outer/memory.max)",
        bytes: 300 * MIB,
        usedBytes: 150 * MIB,
      },
      {
        name: "this container or control group (/sys/fs/cgroup/outer/inner/memory.high)",
        bytes: 250 * MIB,
        usedBytes: 100 * MIB,
      },
    ]);
    expect(memoryTotal(groups)).toBe(250 * MIB);
  });

  test("include those of a container whose mount root is its own group (version 1)", () => {
    write({
      "proc/meminfo": MEMINFO,
      "proc/self/cgroup": "5:cpu:/docker/abc\n4:memory:/docker/abc\n0::/",
      "proc/self/mountinfo":
        "30 20 0:26 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n31 20 0:27 / /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu",
      "sys/fs/cgroup/memory/memory.limit_in_bytes": 512 * MIB,
      "sys/fs/cgroup/memory/memory.usage_in_bytes": 100 * MIB,
      "sys/fs/cgroup/memory/memory.stat": `inactive_file 5\ntotal_inactive_file ${10 * MIB}`,
    });
    expect(memoryLimits(root)[1]).toEqual({
      name: "this container or control group (/sys/fs/cgroup/memory/memory.limit_in_bytes)",
      bytes: 512 * MIB,
      usedBytes: 90 * MIB,
    });
  });

  test("are only the machine's if no control group sets one", () => {
    write({
      "proc/meminfo": MEMINFO,
      "proc/self/cgroup": "4:memory:/",
      "proc/self/mountinfo": "30 20 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
      "sys/fs/cgroup/memory/memory.limit_in_bytes": NO_LIMIT,
      "sys/fs/cgroup/memory/memory.usage_in_bytes": 100 * MIB,
    });
    expect(memoryLimits(root)).toHaveLength(1);
  });

  test("are the machine's if the files cannot be read", () => {
    expect(memoryLimits(root)).toMatchObject([{ name: "this machine", bytes: os.totalmem() }]);
  });
});

test("the resident memory of this process is its peak if the system hides the current value", () => {
  const most = residentBytes(() => {
    throw new Error("ENOENT: no such file or directory, uv_resident_set_memory");
  });
  expect(most).toBeGreaterThanOrEqual(residentBytes() / 2);
});

test.skipIf(process.platform === "win32")("the limit of open files is known", () => {
  expect(userLimits().descriptors).toBeGreaterThan(0);
});
