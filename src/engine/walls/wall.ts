/** How a process is started. */
export interface ProcessStart {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** What the descriptors after those of the channel give to read, one after the other. */
  readonly inputs?: readonly Uint8Array[];
}

/** What a process behind a wall may see of the disk, beside the runtime. */
export interface WallView {
  /** Files and folders that it may read. */
  readonly readable: readonly string[];
}

export type WallName = "bubblewrap" | "namespaces" | "sandbox-exec";

/** What the operating system puts around an engine, outside of Node's permission model. */
export interface Wall {
  readonly name: WallName;
  /** What it is made of, for people. */
  readonly parts: readonly string[];
  /** The same process behind the wall. */
  enclose(start: ProcessStart, view: WallView): ProcessStart;
}
