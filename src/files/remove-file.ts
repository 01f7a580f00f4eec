import { rm } from "node:fs/promises";
import { waitWhileInUse } from "./wait-while-in-use.ts";

/** Removes a file, if it exists; waits while another program has it open. */
export async function removeFile(file: string): Promise<void> {
  await waitWhileInUse(async () => await rm(file, { force: true }));
}
