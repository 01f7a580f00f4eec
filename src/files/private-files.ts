import { chmod, mkdir, open } from "node:fs/promises";

/** Makes a folder that other accounts cannot enter, whatever the umask is; one that exists becomes such a folder. */
export async function makePrivateFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await allow(folder, 0o700);
}

/**
 * Makes an empty file for a database that other accounts cannot read; SQLite gives the files that it adds the same
 * permissions. Those that exist become such files. What the system refuses is left to SQLite to report.
 */
export async function makePrivateDatabase(file: string): Promise<void> {
  const handle = await open(file, "a", 0o600).catch(() => undefined);
  await handle?.close();
  for (const suffix of ["", "-wal", "-shm"]) await allow(file + suffix, 0o600);
}

/** Some file systems have no permissions, and some of the files may not be there. */
async function allow(name: string, mode: number): Promise<void> {
  await chmod(name, mode).catch(() => undefined);
}
