import { endianness } from "node:os";
import { DENIED_SYSCALLS } from "./denied-syscalls.ts";

/** Architectures for which there is a filter. */
export type FilteredArch = "x64" | "arm64";

interface ArchFacts {
  /** The kernel's number for it (AUDIT_ARCH_*). */
  readonly audit: number;
  readonly clone: number;
  readonly ioctl: number;
}

const ARCHS: Readonly<Record<FilteredArch, ArchFacts>> = {
  x64: { audit: 0xc000003e, clone: 56, ioctl: 16 },
  arm64: { audit: 0xc00000b7, clone: 220, ioctl: 29 },
};

/** A filter cannot see its flags, which are in memory; without it, libraries fall back to clone. */
const CLONE3 = 435;

/** The last system call that was reviewed; later ones, from newer kernels, fail as unknown. */
const LAST_KNOWN = 466;

/** Numbers from here on are the x32 system calls of x64, which Node does not use. */
const X32_BIT = 0x40000000;

const CLONE_THREAD = 0x00010000;

/** They insert characters into a terminal as if the user had typed them. */
const TIOCSTI = 0x5412;
const TIOCLINUX = 0x541c;

/** Offsets in struct seccomp_data. */
const AT_NUMBER = 0;
const AT_ARCH = 4;
const AT_FIRST_ARGUMENT = 16;
const AT_SECOND_ARGUMENT = 24;

/** Opcodes of classic BPF. */
const LOAD = 0x20;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_GREATER = 0x25;
const JUMP_IF_AT_LEAST = 0x35;
const JUMP_IF_ANY_BIT = 0x45;
const RETURN = 0x06;

const ALLOW = 0x7fff0000;
const KILL_PROCESS = 0x80000000;
const FAIL = 0x00050000;
const FAIL_NOT_PERMITTED = FAIL | 1;
const FAIL_NO_SUCH_CALL = FAIL | 38;

type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number];

const load = (at: number): Instruction => [LOAD, 0, 0, at];
const answer = (value: number): Instruction => [RETURN, 0, 0, value];
/** Runs the next instruction only if the condition holds. */
const when = (code: number, value: number): Instruction => [code, 0, 1, value];
/** Skips the next instruction if the condition holds. */
const unless = (code: number, value: number): Instruction => [code, 1, 0, value];

export function isFilteredArch(arch: string): arch is FilteredArch {
  return arch === "x64" || arch === "arm64";
}

/**
 * A seccomp program (classic BPF) that denies {@link DENIED_SYSCALLS}, new processes, and system calls that are not
 * known here. A denied call fails with an error; the process goes on.
 */
export function seccompFilter(arch: FilteredArch): Buffer {
  const facts = ARCHS[arch];
  const denied = Object.values(DENIED_SYSCALLS)
    .flat()
    .flatMap((syscall) => syscall[arch] ?? []);
  return assemble([
    load(AT_ARCH),
    unless(JUMP_IF_EQUAL, facts.audit),
    answer(KILL_PROCESS),
    load(AT_NUMBER),
    when(JUMP_IF_AT_LEAST, X32_BIT),
    answer(FAIL_NO_SUCH_CALL),
    when(JUMP_IF_GREATER, LAST_KNOWN),
    answer(FAIL_NO_SUCH_CALL),
    when(JUMP_IF_EQUAL, CLONE3),
    answer(FAIL_NO_SUCH_CALL),
    ...denied.flatMap((number) => [when(JUMP_IF_EQUAL, number), answer(FAIL_NOT_PERMITTED)]),
    // clone may only create threads.
    [JUMP_IF_EQUAL, 0, 4, facts.clone],
    load(AT_FIRST_ARGUMENT),
    unless(JUMP_IF_ANY_BIT, CLONE_THREAD),
    answer(FAIL_NOT_PERMITTED),
    answer(ALLOW),
    unless(JUMP_IF_EQUAL, facts.ioctl),
    answer(ALLOW),
    load(AT_SECOND_ARGUMENT),
    when(JUMP_IF_EQUAL, TIOCSTI),
    answer(FAIL_NOT_PERMITTED),
    when(JUMP_IF_EQUAL, TIOCLINUX),
    answer(FAIL_NOT_PERMITTED),
    answer(ALLOW),
  ]);
}

const INSTRUCTION_BYTES = 8;

function assemble(program: readonly Instruction[]): Buffer {
  if (endianness() !== "LE") throw new Error("seccomp filters are assembled for little-endian machines only");
  const bytes = Buffer.alloc(program.length * INSTRUCTION_BYTES);
  program.forEach(([code, ifTrue, ifFalse, value], index) => {
    const at = index * INSTRUCTION_BYTES;
    bytes.writeUInt16LE(code, at);
    bytes.writeUInt8(ifTrue, at + 2);
    bytes.writeUInt8(ifFalse, at + 3);
    bytes.writeUInt32LE(value >>> 0, at + 4);
  });
  return bytes;
}
