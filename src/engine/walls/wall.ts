/** How a process is started. */
export interface ProcessStart {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Contents to read from the descriptors after those of the channel, in order. */
  readonly inputs?: readonly Uint8Array[];
}

/** What a process inside a wall may see of the disk besides the runtime. */
export interface WallView {
  /** Files and folders that it may read. */
  readonly readable: readonly string[];
}

export type WallName = "bubblewrap" | "namespaces" | "sandbox-exec";

/** Sandbox that the operating system puts around an engine, outside Node's permission model. */
export interface Wall {
  readonly name: WallName;
  /** What it is made of, for people. */
  readonly parts: readonly string[];
  /** Wraps a process start in the wall. */
  enclose(start: ProcessStart, view: WallView): ProcessStart;
}
