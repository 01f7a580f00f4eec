import { mkdirSync } from "node:fs";
import path from "node:path";
import { LLAMA_CPP_BUILD } from "../../wasm/llama-cpp-build.ts";
import { projectManifest } from "./project.ts";
import { runCommand } from "./run-command.ts";

/** A first answer takes two seconds on an idle machine, and minutes on a busy one; this only ends what hangs. */
const DEADLINE_MS = 300_000;

/**
 * Checks that an installed program prints its version and gives an answer.
 * @param folder where it may put its cache, which is new
 * @param searched PATH
 * @throws Error with what it said, when it does not
 */
export async function tryProgram(program: string, folder: string, searched: string): Promise<void> {
  const home = path.join(folder, "home");
  mkdirSync(home, { recursive: true });
  const env = {
    PATH: searched,
    HOME: home,
    SERVICE_CACHE_DIR: path.join(folder, "cache"),
    SERVICE_SOCKET: process.platform === "win32" ? "" : path.join(folder, "d.sock"),
    SERVICE_HTTP_PORT: "0",
    // Otherwise a daemon that ends writes compiled code into a folder that is being deleted.
    NODE_DISABLE_COMPILE_CACHE: "1",
  };
  const run = async (...args: string[]): Promise<string> =>
    runCommand(program, args, { cwd: folder, env, timeoutMs: DEADLINE_MS });
  const version = (await run("--version")).trim();
  const expected = `${projectManifest().version} (llama.cpp ${LLAMA_CPP_BUILD})`;
  if (version !== expected) throw new Error(`--version said ${version}, and not ${expected}.`);
  try {
    const answer = await run("run", "Hello!", "--max-tokens", "3");
    if (answer.trim() === "") throw new Error("The answer was empty.");
  } finally {
    await run("stop").catch(() => {});
  }
}
