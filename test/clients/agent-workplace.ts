import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { LAUNCHER } from "../e2e/cli-process.ts";
import type { TestDaemon } from "../support/start-daemon.ts";

const PROGRAMS = fileURLToPath(new URL("node_modules/.bin", import.meta.url));

const END_WITH_PARENT = fileURLToPath(new URL("end-with-parent.mjs", import.meta.url));

/** A run takes seconds, a minute where many others compute: this only ends what hangs. */
const RUN_DEADLINE_MS = 280_000;

/** For a test with one run: it ends after the run that hangs. */
export const RUN_TEST_MS = RUN_DEADLINE_MS + 10_000;

/** Nothing listens there: an agent that wants more of the world than the daemon does not get it. */
const NOWHERE = "http://127.0.0.1:9";

interface AgentRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A home and a project for an agent, in a temporary folder. */
export class AgentWorkplace implements Disposable {
  readonly #folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-agent-"));
  readonly #running = new Set<ChildProcess>();
  readonly #end = (): void => this[Symbol.dispose]();

  constructor() {
    mkdirSync(path.join(this.#folder, "project"));
    process.once("exit", this.#end);
  }

  /** Writes one of the agent's own files, below its home. */
  configure(file: string, content: string): void {
    const target = path.join(this.#folder, "home", file);
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, content);
  }

  /** Reads a file of the project; undefined: there is none. */
  read(file: string): string | undefined {
    const target = path.join(this.#folder, "project", file);
    return existsSync(target) ? readFileSync(target, "utf8") : undefined;
  }

  /** Runs a program of one of the installed packages, or at a path, in the project, until it ends. */
  async run(program: string, args: readonly string[], env: Record<string, string> = {}): Promise<AgentRun> {
    const child = spawn(process.execPath, [END_WITH_PARENT, path.resolve(PROGRAMS, program), ...args], {
      cwd: path.join(this.#folder, "project"),
      env: { ...this.#environment(), ...env },
      stdio: "pipe",
      // A group of its own, which ends as a whole: agents start programs.
      detached: true,
    });
    this.#running.add(child);
    const deadline = setTimeout(() => endGroup(child), RUN_DEADLINE_MS);
    try {
      return await finished(child);
    } finally {
      clearTimeout(deadline);
      endGroup(child);
      this.#running.delete(child);
    }
  }

  /** Runs an agent as `daybreak launch` does, with arguments of its own. */
  async launch(
    daemon: TestDaemon,
    agent: string,
    model: string,
    args: readonly string[],
    env: Record<string, string> = {},
  ): Promise<AgentRun> {
    const command = [LAUNCHER, "launch", agent, "-m", model, "--url", daemon.url, "--", ...args];
    return await this.run(process.execPath, command, env);
  }

  [Symbol.dispose](): void {
    process.off("exit", this.#end);
    for (const child of this.#running) endGroup(child);
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 3 });
  }

  #environment(): Record<string, string> {
    const home = path.join(this.#folder, "home");
    mkdirSync(home, { recursive: true });
    return {
      // The Node that runs these tests, for agents that are scripts.
      PATH: [PROGRAMS, path.dirname(process.execPath), process.env["PATH"]].join(path.delimiter),
      HOME: home,
      TMPDIR: this.#folder,
      XDG_CONFIG_HOME: path.join(home, ".config"),
      XDG_DATA_HOME: path.join(home, ".local/share"),
      XDG_STATE_HOME: path.join(home, ".local/state"),
      XDG_CACHE_HOME: path.join(home, ".cache"),
      HTTP_PROXY: NOWHERE,
      HTTPS_PROXY: NOWHERE,
      NO_PROXY: "127.0.0.1",
      NPM_CONFIG_REGISTRY: NOWHERE,
    };
  }
}

function finished(child: ChildProcess): Promise<AgentRun> {
  const said = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (text: string) => {
      said[name] += text;
    });
  }
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, ...said }));
  });
}

function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended, and all that it started.
  }
}
