import { accessSync, constants } from "node:fs";
import path from "node:path";
import { requireOnCi } from "./require-on-ci.ts";

/** Servers of Debian are here, which is not in everybody's path. */
const SERVER_FOLDERS = ["/usr/sbin", "/usr/local/sbin"];

/**
 * The path of a program that tests need; null where it is not installed.
 * @throws Error on CI, which has it
 */
export function findProgram(name: string): string | null {
  const folders = [...(process.env["PATH"] ?? "").split(path.delimiter), ...SERVER_FOLDERS];
  const found = folders.map((folder) => path.join(folder, name)).find(isExecutable) ?? null;
  requireOnCi(name, found !== null);
  return found;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
