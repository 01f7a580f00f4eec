import { open } from "node:fs/promises";

/**
 * Makes the names in a folder durable: a file that was renamed into it is found there after a power cut. Windows does
 * that by itself and opens no folders.
 */
export async function syncFolder(
  folder: string,
  platform: NodeJS.Platform = process.platform,
): Promise<void> {
  if (platform === "win32") return;
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } catch (error) {
    // Some network file systems refuse it of folders; then nothing more can be done.
    if (!(error instanceof Error && "code" in error && error.code === "EINVAL")) throw error;
  } finally {
    await handle.close();
  }
}
