import { accessSync, constants, statSync } from "node:fs";
import path from "node:path";

/** Default of PATHEXT: extensions that Windows tries for a name without one. */
const WINDOWS_EXTENSIONS = ".COM;.EXE;.BAT;.CMD";

/** Path of the first of these programs in a folder of PATH. */
export function findInPath(names: readonly string[], env: NodeJS.ProcessEnv): string | undefined {
  const folders = (env["PATH"] ?? "").split(path.delimiter).filter((folder) => folder !== "");
  const extensions = process.platform === "win32" ? (env["PATHEXT"] ?? WINDOWS_EXTENSIONS).split(";") : [""];
  const candidates = names.flatMap((name) =>
    folders.flatMap((folder) => extensions.map((extension) => path.join(folder, name + extension))),
  );
  return candidates.find(isProgram);
}

export function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
