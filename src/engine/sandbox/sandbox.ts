/** How to start a process. */
export interface ProcessStart {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Data for the descriptors after those of the channel, in order. */
  readonly inputs?: readonly Uint8Array[];
}

/** What a process inside a wall may see of the disk, in addition to Node. */
export interface SandboxView {
  readonly readable: readonly string[];
}

export type SandboxName = "bubblewrap" | "namespaces" | "sandbox-exec";

/** A sandbox of the operating system around an engine, in addition to Node's permission model. */
export interface Sandbox {
  readonly name: SandboxName;
  /** What it consists of, for people. */
  readonly parts: readonly string[];
  /** Wraps a process start in the wall. */
  enclose(start: ProcessStart, view: SandboxView): ProcessStart;
}
