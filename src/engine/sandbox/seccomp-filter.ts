import { endianness } from "node:os";

/** Architectures for which there is a filter. */
type FilteredArch = "x64" | "arm64";

interface ArchConstants {
  /** Kernel's number of the architecture (AUDIT_ARCH_*). */
  readonly audit: number;
  readonly clone: number;
  readonly ioctl: number;
}

const ARCHS: Readonly<Record<FilteredArch, ArchConstants>> = {
  x64: { audit: 0xc000003e, clone: 56, ioctl: 16 },
  arm64: { audit: 0xc00000b7, clone: 220, ioctl: 29 },
};

/** Denied, because its flags are in memory, which a filter cannot read; libraries then fall back to clone. */
const CLONE3 = 435;

/** Last system call that was reviewed; later ones, from newer kernels, fail as unknown. */
const LAST_KNOWN = 466;

/** First number of the x32 system calls of x64, which Node does not use. */
const X32_BIT = 0x40000000;

const CLONE_THREAD = 0x00010000;

/** Requests of ioctl that insert characters into a terminal as if the user had typed them. */
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
const returnWith = (value: number): Instruction => [RETURN, 0, 0, value];
/** Runs the next instruction only if the condition holds. */
const when = (code: number, value: number): Instruction => [code, 0, 1, value];
/** Skips the next instruction if the condition holds. */
const unless = (code: number, value: number): Instruction => [code, 1, 0, value];

/**
 * Assembles a seccomp program (classic BPF) that denies {@link DENIED_SYSCALLS}, new processes, and system calls after
 * the last reviewed one. A denied call fails with an error; the process continues.
 * @returns undefined for a processor architecture without a reviewed list
 */
export function seccompFilter(arch: string): Buffer | undefined {
  if (arch !== "x64" && arch !== "arm64") return undefined;
  const constants = ARCHS[arch];
  const denied = Object.values(DENIED_SYSCALLS)
    .flat()
    .flatMap((syscall) => syscall[arch] ?? []);
  return assemble([
    load(AT_ARCH),
    unless(JUMP_IF_EQUAL, constants.audit),
    returnWith(KILL_PROCESS),
    load(AT_NUMBER),
    when(JUMP_IF_AT_LEAST, X32_BIT),
    returnWith(FAIL_NO_SUCH_CALL),
    when(JUMP_IF_GREATER, LAST_KNOWN),
    returnWith(FAIL_NO_SUCH_CALL),
    when(JUMP_IF_EQUAL, CLONE3),
    returnWith(FAIL_NO_SUCH_CALL),
    ...denied.flatMap((number) => [when(JUMP_IF_EQUAL, number), returnWith(FAIL_NOT_PERMITTED)]),
    // clone may only create threads.
    [JUMP_IF_EQUAL, 0, 4, constants.clone],
    load(AT_FIRST_ARGUMENT),
    unless(JUMP_IF_ANY_BIT, CLONE_THREAD),
    returnWith(FAIL_NOT_PERMITTED),
    returnWith(ALLOW),
    unless(JUMP_IF_EQUAL, constants.ioctl),
    returnWith(ALLOW),
    load(AT_SECOND_ARGUMENT),
    when(JUMP_IF_EQUAL, TIOCSTI),
    returnWith(FAIL_NOT_PERMITTED),
    when(JUMP_IF_EQUAL, TIOCLINUX),
    returnWith(FAIL_NOT_PERMITTED),
    returnWith(ALLOW),
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

/** Numbers of a system call, for the architectures that have it. */
interface Syscall {
  readonly x64?: number;
  readonly arm64?: number;
}

const call = (x64: number | undefined, arm64: number | undefined): Syscall => ({
  ...(x64 !== undefined && { x64 }),
  ...(arm64 !== undefined && { arm64 }),
});

/** Newer system call, with the same number on all architectures. */
const allArchs = (number: number): Syscall => call(number, number);

/**
 * System calls that an engine does not need and that could help it escape its sandbox or attack the kernel. Node, its
 * threads and compiled WebAssembly were not observed to make any of them.
 */
export const DENIED_SYSCALLS: Readonly<Record<string, readonly Syscall[]>> = {
  "other processes": [
    call(101, 117), // ptrace
    call(310, 270), // process_vm_readv
    call(311, 271), // process_vm_writev
    call(312, 272), // kcmp
    allArchs(424), // pidfd_send_signal
    allArchs(434), // pidfd_open
    allArchs(438), // pidfd_getfd
    allArchs(440), // process_madvise
    allArchs(448), // process_mrelease
  ],
  "new processes": [
    call(57, undefined), // fork
    call(58, undefined), // vfork
    call(322, 281), // execveat
  ],
  "sockets, and passing descriptors": [
    call(41, 198), // socket
    call(53, 199), // socketpair
    call(42, 203), // connect
    call(49, 200), // bind
    call(50, 201), // listen
    call(43, 202), // accept
    call(288, 242), // accept4
    call(44, 206), // sendto
    call(45, 207), // recvfrom
    call(46, 211), // sendmsg
    call(47, 212), // recvmsg
    call(307, 269), // sendmmsg
    call(299, 243), // recvmmsg
  ],
  "mounts and namespaces": [
    call(165, 40), // mount
    call(166, 39), // umount2
    call(155, 41), // pivot_root
    call(161, 51), // chroot
    call(272, 97), // unshare
    call(308, 268), // setns
    allArchs(428), // open_tree
    allArchs(429), // move_mount
    allArchs(430), // fsopen
    allArchs(431), // fsconfig
    allArchs(432), // fsmount
    allArchs(433), // fspick
    allArchs(442), // mount_setattr
    allArchs(457), // statmount
    allArchs(458), // listmount
  ],
  "other identities": [
    call(105, 146), // setuid
    call(106, 144), // setgid
    call(113, 145), // setreuid
    call(114, 143), // setregid
    call(117, 147), // setresuid
    call(119, 149), // setresgid
    call(116, 159), // setgroups
    call(122, 151), // setfsuid
    call(123, 152), // setfsgid
    call(126, 91), // capset
  ],
  "parts of the kernel with many past vulnerabilities": [
    call(321, 280), // bpf
    call(298, 241), // perf_event_open
    call(323, 282), // userfaultfd
    allArchs(425), // io_uring_setup
    allArchs(426), // io_uring_enter
    allArchs(427), // io_uring_register
    call(248, 217), // add_key
    call(249, 218), // request_key
    call(250, 219), // keyctl
    call(300, 262), // fanotify_init
    call(301, 263), // fanotify_mark
    call(303, 264), // name_to_handle_at
    call(304, 265), // open_by_handle_at
    call(154, undefined), // modify_ldt
    call(135, 92), // personality
    call(317, 277), // seccomp
    call(275, 76), // splice
    call(276, 77), // tee
    call(278, 75), // vmsplice
    call(319, 279), // memfd_create
    allArchs(447), // memfd_secret
  ],
  "shared memory and messages": [
    call(29, 194), // shmget
    call(30, 196), // shmat
    call(31, 195), // shmctl
    call(67, 197), // shmdt
    call(64, 190), // semget
    call(65, 193), // semop
    call(66, 191), // semctl
    call(220, 192), // semtimedop
    call(68, 186), // msgget
    call(69, 189), // msgsnd
    call(70, 188), // msgrcv
    call(71, 187), // msgctl
    call(240, 180), // mq_open
    call(241, 181), // mq_unlink
    call(242, 182), // mq_timedsend
    call(243, 183), // mq_timedreceive
    call(244, 184), // mq_notify
    call(245, 185), // mq_getsetattr
    call(256, 238), // migrate_pages
    call(279, 239), // move_pages
  ],
  "the machine itself": [
    call(169, 142), // reboot
    call(246, 104), // kexec_load
    call(320, 294), // kexec_file_load
    call(175, 105), // init_module
    call(313, 273), // finit_module
    call(176, 106), // delete_module
    call(167, 224), // swapon
    call(168, 225), // swapoff
    call(163, 89), // acct
    call(103, 116), // syslog
    call(179, 60), // quotactl
    allArchs(443), // quotactl_fd
    call(164, 170), // settimeofday
    call(227, 112), // clock_settime
    call(305, 266), // clock_adjtime
    call(159, 171), // adjtimex
    call(170, 161), // sethostname
    call(171, 162), // setdomainname
    call(172, undefined), // iopl
    call(173, undefined), // ioperm
    call(153, 58), // vhangup
    call(133, undefined), // mknod
    call(259, 33), // mknodat
  ],
};
