import { accessSync, constants, statSync } from "node:fs";
import path from "node:path";

/** What a shell looks for on Windows when a name has no ending; elsewhere names are complete. */
const WINDOWS_ENDINGS = ".COM;.EXE;.BAT;.CMD";

/** Path of the first of these programs that the variable PATH leads to. */
export function findInPath(names: readonly string[], env: NodeJS.ProcessEnv): string | undefined {
  const folders = (env["PATH"] ?? "").split(path.delimiter).filter((folder) => folder !== "");
  const endings = process.platform === "win32" ? (env["PATHEXT"] ?? WINDOWS_ENDINGS).split(";") : [""];
  const places = names.flatMap((name) =>
    folders.flatMap((folder) => endings.map((ending) => path.join(folder, name + ending))),
  );
  return places.find(isProgram);
}

export function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
