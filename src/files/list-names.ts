import { readdir } from "node:fs/promises";
import { throwExhaustion } from "../errors/exhausted-resource.ts";

/** The names in a folder; none when it is not there. */
export async function listNames(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    throwExhaustion(error);
    return [];
  }
}
