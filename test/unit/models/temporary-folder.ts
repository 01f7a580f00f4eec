import { mkdtemp, realpath, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { onTestFinished } from "vitest";

/** Creates a folder that is deleted after the test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(path.join(os.tmpdir(), "daybreak-models-")));
  // Files that were being written when the test ended may still appear in it.
  onTestFinished(
    async () => await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }),
  );
  return folder;
}
