import { chmodSync } from "node:fs";
import { open } from "node:fs/promises";
import path from "node:path";
import { removeFile } from "./remove-file.ts";

/** Result codes of SQLite that are told apart (https://sqlite.org/rescode.html). */
const SQLITE = { busy: 5, readOnly: 8, ioError: 10, cannotOpen: 14, notADatabase: 26 };

/**
 * Takes the operating system's lock on a file, which is made when it is missing; undefined when somebody has it. The
 * system itself takes the lock away from a holder that ends, however it ends. Nothing else may open the file in this
 * process: closing it would give up the lock. A file system that knows no locks gives one to everybody.
 *
 * Node offers no such lock but that of SQLite, whose database stays empty here.
 * @throws what the system says of the file or its folder
 */
export async function tryLock(file: string): Promise<Disposable | undefined> {
  const { DatabaseSync } = await import("node:sqlite");
  // Unlike Node, SQLite does not write the name of a file so that Windows takes it also when it is long.
  const database = new DatabaseSync(path.toNamespacedPath(file), { open: false, timeout: 0 });
  try {
    database.open();
    allowOnlyOwner(file);
    // The journal in memory, as it would be a second file.
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    const code = sqliteCode(error);
    if (code !== SQLITE.ioError && database.isOpen) database.close();
    if (code === SQLITE.busy) return undefined;
    if (code === SQLITE.notADatabase) {
      // Somebody has written into it; it holds nothing of worth.
      await removeFile(file);
      return await tryLock(file);
    }
    if (code === SQLITE.cannotOpen || code === SQLITE.readOnly) await explainRefusal(file);
    if (code !== SQLITE.ioError) throw error;
  }
  return {
    [Symbol.dispose]() {
      if (database.isOpen) database.close();
    },
  };
}

/** Another user who can read the file could hold a lock on it. */
function allowOnlyOwner(file: string): void {
  try {
    chmodSync(file, 0o600);
  } catch {
    // A file system without permissions has none to take away.
  }
}

/** Throws the system's own reason why no file can be made beside this one; SQLite does not pass it on. */
async function explainRefusal(file: string): Promise<void> {
  const probe = `${file}.probe`;
  await (await open(probe, "w", 0o600)).close();
  await removeFile(probe);
}

function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error && "errcode" in error && typeof error.errcode === "number")) return undefined;
  // The low byte is the code, what is above it a finer one.
  return error.errcode & 0xff;
}
