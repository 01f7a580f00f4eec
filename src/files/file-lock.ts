import { chmodSync } from "node:fs";
import { open } from "node:fs/promises";
import path from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { removeFile } from "./remove-file.ts";
import { SQLITE, sqliteCode } from "./sqlite-code.ts";

/** Databases whose locks are held: garbage collection would close them, also while the lock's holder only waits. */
const held = new Set<DatabaseSync>();

/**
 * Takes the operating system's lock on a file, which is created if missing; undefined if another process holds it. The
 * system releases the lock when its holder ends, in any way. Nothing else in this process may open the file, because
 * closing it would release the lock. On a file system without locks everybody gets one.
 *
 * Node's only such lock is that of SQLite, whose database stays empty here.
 * @throws the system's error about the file or its folder
 */
export async function tryLock(file: string): Promise<Disposable | undefined> {
  const { DatabaseSync } = await import("node:sqlite");
  // Unlike Node, SQLite does not write the name of a file so that Windows takes it also when it is long.
  const database = new DatabaseSync(path.toNamespacedPath(file), { open: false, timeout: 0 });
  try {
    database.open();
    allowOnlyOwner(file);
    // Keep the journal in memory; it would be a second file.
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    const code = sqliteCode(error);
    if (code !== SQLITE.ioError && database.isOpen) database.close();
    if (code === SQLITE.busy) return undefined;
    if (code === SQLITE.notADatabase) {
      // Somebody has written to it; it contains nothing important.
      await removeFile(file);
      return await tryLock(file);
    }
    if (code === SQLITE.cannotOpen || code === SQLITE.readOnly) await explainRefusal(file);
    if (code !== SQLITE.ioError) throw error;
  }
  held.add(database);
  return {
    [Symbol.dispose]() {
      held.delete(database);
      if (database.isOpen) database.close();
    },
  };
}

/** Other users who can read the file could lock it. */
function allowOnlyOwner(file: string): void {
  try {
    chmodSync(file, 0o600);
  } catch {
    // Some file systems have no permissions.
  }
}

/** Throws the system's reason why no file can be created in this folder, which SQLite does not report. */
async function explainRefusal(file: string): Promise<void> {
  const probe = `${file}.probe`;
  await (await open(probe, "w", 0o600)).close();
  await removeFile(probe);
}
