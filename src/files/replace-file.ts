import { rename } from "node:fs/promises";
import { waitWhileInUse } from "./wait-while-in-use.ts";

/** Gives a file its final name, in place of what has that name; waits for who has one of them open. */
export async function replaceFile(from: string, to: string): Promise<void> {
  await waitWhileInUse(async () => await rename(from, to));
}
