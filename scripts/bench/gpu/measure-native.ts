import { execFile } from "node:child_process";
import { copyFileSync, existsSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import type { Speed, Workload } from "./rates.ts";

/** Its prebuilt llama.cpp; bench-only, and never installed into the project. */
const NATIVE_PACKAGE = "node-llama-cpp@3.22.1";

const RUNNER = "native-runner.mjs";
const TIMEOUT_MS = 1_800_000;

const run = promisify(execFile);

export function isNativeInstalled(folder: string): boolean {
  return existsSync(path.join(folder, "node_modules", "node-llama-cpp", "package.json"));
}

/** Installs native llama.cpp into a folder, unless it is there; returns why it could not. */
export async function installNative(folder: string): Promise<string | undefined> {
  if (isNativeInstalled(folder)) return undefined;
  // Its install script would look for a compiler where no prebuilt binary fits.
  const args = ["install", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts", NATIVE_PACKAGE];
  try {
    await run("npm", args, { timeout: TIMEOUT_MS, shell: process.platform === "win32" });
    return undefined;
  } catch (error) {
    return `${NATIVE_PACKAGE} cannot be installed into ${folder} (${whyNot(error)}): it needs npm and the network, once; --skip native does without`;
  }
}

/** Extracts npm's reason from the error of its command. */
function whyNot(error: unknown): string {
  const lines = String(error).split("\n");
  const said = lines.flatMap(
    (line) => /^npm (?:error|ERR!) (?!A complete log|code |syscall |errno |type )(.+)/.exec(line)?.[1] ?? [],
  );
  return said[0] ?? lines[0] ?? "";
}

/** Measures a model in native llama.cpp, in a separate process: a missing backend may crash it. */
export async function measureNative(
  folder: string,
  file: string,
  gpu: string,
  workload: Workload,
): Promise<Speed> {
  const script = path.join(folder, RUNNER);
  copyFileSync(path.join(import.meta.dirname, RUNNER), script);
  try {
    const { stdout } = await run(process.execPath, [script, file, gpu, JSON.stringify(workload)], {
      timeout: TIMEOUT_MS,
      cwd: folder,
    });
    const speed: Speed = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
    return speed;
  } catch (error) {
    const text = String(error);
    if (text.includes("NoBinaryFoundError")) {
      return { problem: `node-llama-cpp has nothing for ${gpu} that runs here; is its driver installed?` };
    }
    // Node prints the failing line of the source before the error itself.
    const [, why = text] = /^\w*Error: (.*)$/m.exec(text.replace(/^Error: Command failed.*$/m, "")) ?? [];
    return { problem: why };
  }
}
