import { existsSync } from "node:fs";
import { rename } from "node:fs/promises";
import path from "node:path";
import { ServiceError } from "../errors/service-error.ts";
import { tryLock } from "../files/file-lock.ts";
import { makePrivateDatabase, makePrivateFolder } from "../files/private-files.ts";
import { FileFolder } from "./file-folder.ts";
import { DamagedDatabase } from "./sqlite/database.ts";
import { SqliteBatchStore } from "./sqlite/sqlite-batch-store.ts";

const DATA = "data";
const DATABASE = "batches.db";
const LOCK = "daybreak.lock";

export interface OpenedStore {
  readonly store: SqliteBatchStore;
  readonly folder: FileFolder;
  /** Closes the database and lets others have it. */
  close(): void;
}

/** Whether there is anything to go on with. */
export function hasStore(folder: string): boolean {
  return existsSync(path.join(folder, DATA, DATABASE));
}

/**
 * Opens what is kept of batches, or begins it.
 * @throws ServiceError batch_store_unavailable when another process has it, or when it was damaged and has been put aside
 */
export async function openStore(folder: string, now: () => number): Promise<OpenedStore> {
  await makePrivateFolder(folder);
  const lock = await tryLock(path.join(folder, LOCK));
  if (!lock) {
    throw new ServiceError(
      "batch_store_unavailable",
      `Another daemon has the batches in ${folder}. Ask that one, or start this one with another cache_dir.`,
    );
  }
  try {
    const data = path.join(folder, DATA);
    const database = path.join(data, DATABASE);
    await makePrivateFolder(data);
    const files = await FileFolder.open(path.join(data, "files"));
    await makePrivateDatabase(database);
    const store = await SqliteBatchStore.open(database, now);
    await files.keepOnly(await store.fileIds());
    return {
      store,
      folder: files,
      close() {
        store.close();
        lock[Symbol.dispose]();
      },
    };
  } catch (error) {
    lock[Symbol.dispose]();
    if (error instanceof DamagedDatabase) throw await putAside(folder, now(), error);
    throw error;
  }
}

/** Puts damaged data aside, so that the next use begins anew. Nothing may have it open. */
export async function putAside(folder: string, time: number, cause: unknown): Promise<ServiceError> {
  const aside = path.join(folder, `damaged-${new Date(time).toISOString().replaceAll(/[:.]/g, "-")}`);
  const hasMoved = await rename(path.join(folder, DATA), aside).then(
    () => true,
    () => false,
  );
  const what = hasMoved
    ? `It has been put aside as ${aside}, and a new one begins with the next request; create unfinished batches again.`
    : `Stop the daemon and move ${path.join(folder, DATA)} away.`;
  return new ServiceError("batch_store_unavailable", `The store of batches was damaged. ${what}`, { cause });
}
