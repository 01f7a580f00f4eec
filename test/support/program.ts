import { copyFileSync, existsSync, mkdirSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { type SpawnEngine, spawnEngine } from "../../src/engine/launch.ts";
import { IMAGE_SHA256 } from "../../wasm/engine-image.ts";

const REPOSITORY = fileURLToPath(new URL("../../", import.meta.url));

/** The folder of the program that tests run: see build-program.ts; for scripts without that the sources. */
export const PROGRAM = process.env["DAYBREAK_TEST_PROGRAM"] ?? REPOSITORY;

/** Where tests keep what all of them use; for scripts among the temporary files. */
const KEPT = process.env["DAYBREAK_TEST_KEPT"] ?? os.tmpdir();

/** A cache folder that holds the engine. */
export const ENGINE_CACHE = path.join(KEPT, "daybreak-test-cache");

/**
 * Halves the start of the program, which the tests start hundreds of times. Shared by all of them, as a user's commands
 * share theirs: each has a cache folder of its own, which would be empty at every start.
 */
export const COMPILE_CACHE = {
  NODE_COMPILE_CACHE: path.join(KEPT, "daybreak-test-code"),
};

/** Puts the engine into a cache folder, where a daemon would make it when it first starts. */
export function copyEngine(cacheDir: string): void {
  const image = path.join("engine", `${IMAGE_SHA256}.wasm`);
  const to = path.join(cacheDir, image);
  if (existsSync(to) || !existsSync(path.join(ENGINE_CACHE, image))) return;
  mkdirSync(path.dirname(to), { recursive: true });
  copyFileSync(path.join(ENGINE_CACHE, image), to);
}

/** Starts an engine process of {@link PROGRAM}, with the very same rights. */
export const spawnTestEngine: SpawnEngine = (command, args, options) => {
  if (PROGRAM === REPOSITORY) return spawnEngine(command, args, options);
  const inProgram = (arg: string): string =>
    arg
      .replace(path.join(REPOSITORY, "src"), path.join(PROGRAM, "src"))
      .replace(path.join(REPOSITORY, "wasm", path.sep), path.join(PROGRAM, "wasm", path.sep))
      .replace(/(engine-main|close-network|load-settings)\.ts$/, "$1.js");
  return spawnEngine(command, args.map(inProgram), { ...options, cwd: inProgram(options.cwd) });
};
