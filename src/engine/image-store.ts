import { rmSync } from "node:fs";
import { mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { isRunning } from "./is-running.ts";

/** A mark of another machine or container that shares the folder is believed for so long. */
const FOREIGN_MARK_MS = 30 * 24 * 60 * 60 * 1000;

const IMAGE = /^([0-9a-f]{64})\.wasm$/;
/** Who uses which image: its hash, the machine's name and the process. */
const MARK = /^([0-9a-f]{64})\.([^.]*)\.(\d+)\.user$/;

/** Marks of this process; removed when it ends, or by the next daemon when it could not. */
const ownMarks = new Set<string>();

/**
 * Marks an image as used by this process: an engine reads it whenever a model is loaded.
 * @param folder holds the images; made when it is missing
 */
export async function markUsed(folder: string, hash: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const mark = path.join(folder, `${hash}.${hostName()}.${process.pid}.user`);
  await writeFile(mark, "");
  if (ownMarks.size === 0) process.once("exit", removeOwnMarks);
  ownMarks.add(mark);
}

/** Removes the images of other versions that no daemon uses any more, and the marks of daemons that are gone. */
export async function removeUnused(folder: string, keptHash: string): Promise<void> {
  const files = await readdir(folder);
  const used = new Set([keptHash]);
  for (const file of files) {
    const [, hash, host, pid] = MARK.exec(file) ?? [];
    if (hash === undefined) continue;
    const mark = path.join(folder, file);
    if (await isHeld(mark, host ?? "", Number(pid))) used.add(hash);
    else await rm(mark, { force: true });
  }
  for (const file of files) {
    const hash = IMAGE.exec(file)?.[1];
    if (hash !== undefined && !used.has(hash)) await rm(path.join(folder, file), { force: true });
  }
}

async function isHeld(mark: string, host: string, pid: number): Promise<boolean> {
  if (host === hostName()) return isRunning(pid);
  const stats = await stat(mark).catch(() => undefined); // its owner may just have removed it
  return stats !== undefined && Date.now() - stats.mtimeMs < FOREIGN_MARK_MS;
}

/** As it can stand between dots in a file's name. */
function hostName(): string {
  return os.hostname().replaceAll(/[^\w-]/g, "-");
}

function removeOwnMarks(): void {
  for (const mark of ownMarks) rmSync(mark, { force: true });
}
