import path from "node:path";
import { fileURLToPath } from "node:url";
import { type SpawnEngine, spawnEngine } from "../../src/engine/launch.ts";

const REPOSITORY = fileURLToPath(new URL("../../", import.meta.url));

/** The folder of the program that tests run: see stripped-program.ts; for scripts without that the sources. */
export const PROGRAM = process.env["DAYBREAK_TEST_PROGRAM"] ?? REPOSITORY;

/** Starts an engine process of {@link PROGRAM}, with the very same rights. */
export const spawnTestEngine: SpawnEngine = (command, args, { env, cwd }) => {
  if (PROGRAM === REPOSITORY) return spawnEngine(command, args, { env, cwd });
  const inProgram = (arg: string): string =>
    arg
      .replace(path.join(REPOSITORY, "src"), path.join(PROGRAM, "src"))
      .replace(/(engine-process)\.ts$/, "$1.js");
  return spawnEngine(command, args.map(inProgram), { env, cwd: inProgram(cwd) });
};
