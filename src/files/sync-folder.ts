import { open } from "node:fs/promises";

/**
 * Makes the names in a folder durable, so that a file renamed into it survives a power failure. Windows does that by
 * itself.
 */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } catch (error) {
    // Some network file systems refuse this for folders; nothing more can be done then.
    if (!(error instanceof Error && "code" in error && error.code === "EINVAL")) throw error;
  } finally {
    await handle.close();
  }
}
