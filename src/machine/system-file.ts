import { readFileSync } from "node:fs";

/**
 * Text of a file by which the system tells of itself (/proc, /sys). Undefined where there is none, or it is hidden: other
 * systems have no such files, and some containers show none.
 */
export function readSystemFile(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
