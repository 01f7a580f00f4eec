import { readdir } from "node:fs/promises";

/** The names in a folder; none when it is not there. */
export async function listNames(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch {
    return [];
  }
}
