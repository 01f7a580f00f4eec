import { rename } from "node:fs/promises";
import { waitWhileInUse } from "./wait-while-in-use.ts";

/** Renames a file, replacing any existing one; waits while another program has one of them open. */
export async function replaceFile(from: string, to: string): Promise<void> {
  await waitWhileInUse(async () => await rename(from, to));
}
