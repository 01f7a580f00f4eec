import { describe, expect, test } from "vitest";
import { DENIED_SYSCALLS, seccompFilter } from "../../../../src/engine/sandbox/seccomp-filter.ts";

const AUDIT = { x64: 0xc000003e, arm64: 0xc00000b7 };
const ALLOWED = "allowed";

/** Runs a filter as the kernel does, for one system call. */
function ask(
  arch: keyof typeof AUDIT,
  number: number,
  args: readonly number[] = [],
  audit = AUDIT[arch],
): string {
  const program = seccompFilter(arch)!;
  const data = new Map<number, number>([
    [0, number],
    [4, audit],
    ...args.map((value, index) => [16 + 8 * index, value] as const),
  ]);
  let accumulator = 0;
  for (let at = 0; at < program.length / 8; at += 1) {
    const code = program.readUInt16LE(at * 8);
    const [yes, no] = [program.readUInt8(at * 8 + 2), program.readUInt8(at * 8 + 3)];
    const value = program.readUInt32LE(at * 8 + 4);
    const jump = (holds: boolean): void => void (at += holds ? yes : no);
    if (code === 0x20) accumulator = data.get(value) ?? 0;
    else if (code === 0x15) jump(accumulator === value);
    else if (code === 0x25) jump(accumulator > value);
    else if (code === 0x35) jump(accumulator >= value);
    else if (code === 0x45) jump((accumulator & value) !== 0);
    else if (code === 0x06) {
      if (value === 0x7fff0000) return ALLOWED;
      return value === 0x80000000 ? "killed" : `error ${value & 0xffff}`;
    } else throw new Error(`unknown instruction ${code}`);
  }
  throw new Error("the program has no end");
}

/** System calls of every engine: read, write, mmap, mprotect, futex, exit. */
const NEEDED = { x64: [0, 1, 9, 10, 202, 60], arm64: [63, 64, 222, 226, 98, 93] };
const CLONE = { x64: 56, arm64: 220 };
const IOCTL = { x64: 16, arm64: 29 };

describe.each(["x64", "arm64"] as const)("the system call filter on %s", (arch) => {
  test("allows the calls that engines need", () => {
    expect(NEEDED[arch].map((number) => ask(arch, number))).toEqual(NEEDED[arch].map(() => ALLOWED));
  });

  test("denies every call of the list", () => {
    const denied = Object.values(DENIED_SYSCALLS)
      .flat()
      .flatMap((syscall) => syscall[arch] ?? []);
    expect(denied.length).toBeGreaterThan(80);
    expect(denied.filter((number) => ask(arch, number) !== "error 1")).toEqual([]);
  });

  test("allows new threads, but no new processes", () => {
    expect(ask(arch, CLONE[arch], [0x3d0f00])).toBe(ALLOWED);
    expect(ask(arch, CLONE[arch], [17])).toBe("error 1");
    expect(ask(arch, CLONE[arch], [0x10000011 & ~0x10000])).toBe("error 1");
    // The filter cannot read its flags; libraries then use clone.
    expect(ask(arch, 435)).toBe("error 38");
  });

  test("denies inserting characters into a terminal", () => {
    expect(ask(arch, IOCTL[arch], [0, 0x5412])).toBe("error 1");
    expect(ask(arch, IOCTL[arch], [0, 0x541c])).toBe("error 1");
    expect(ask(arch, IOCTL[arch], [0, 0x5413])).toBe(ALLOWED);
  });

  test("fails newer calls as unknown, and kills a process that uses another architecture's calls", () => {
    expect(ask(arch, 467)).toBe("error 38");
    expect(ask(arch, 0x40000001)).toBe("error 38");
    expect(ask(arch, 0, [], 0x40000003)).toBe("killed");
  });
});

test("no call number occurs twice in the list", () => {
  const denied = Object.values(DENIED_SYSCALLS).flat();
  for (const arch of ["x64", "arm64"] as const) {
    const numbers = denied.flatMap((syscall) => syscall[arch] ?? []);
    expect(new Set(numbers).size).toBe(numbers.length);
  }
});
