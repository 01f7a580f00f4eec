/** Command, environment and inputs of a process to start. */
export interface ProcessStart {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Data for the file descriptors after those of the channel, in order. */
  readonly inputs?: readonly Uint8Array[];
}

export type SandboxName = "bubblewrap" | "namespaces" | "sandbox-exec";

/** Sandbox of the operating system around an engine, in addition to Node's permission model. */
export interface Sandbox {
  readonly name: SandboxName;
  /** Restrictions of the sandbox, for people. */
  readonly parts: readonly string[];
  /**
   * Returns the start of the same process inside the sandbox.
   * @param readable files and folders that the process may read, in addition to Node
   */
  enclose(start: ProcessStart, readable: readonly string[]): ProcessStart;
}
