import { readdir } from "node:fs/promises";
import { throwExhaustion } from "../errors/exhausted-resource.ts";

/** The names in a folder; empty if it does not exist. */
export async function listNames(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    throwExhaustion(error);
    return [];
  }
}
