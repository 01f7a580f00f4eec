import { rm } from "node:fs/promises";
import { waitWhileInUse } from "./wait-while-in-use.ts";

/** Removes a file, or does nothing where there is none; waits for who has it open. */
export async function removeFile(file: string): Promise<void> {
  await waitWhileInUse(async () => await rm(file, { force: true }));
}
