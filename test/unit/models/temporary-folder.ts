import { mkdtemp, realpath, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { onTestFinished } from "vitest";

/** A folder that is gone after the test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(path.join(os.tmpdir(), "daybreak-models-")));
  // What was being written when a test ended may still appear in it.
  onTestFinished(
    async () => await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }),
  );
  return folder;
}
