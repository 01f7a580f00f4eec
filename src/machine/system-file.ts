import { readFileSync } from "node:fs";

/**
 * Content of a system file (/proc, /sys). Undefined if it does not exist, as on other systems, or is hidden, as in some
 * containers.
 */
export function readSystemFile(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
