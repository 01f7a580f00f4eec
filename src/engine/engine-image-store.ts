import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { mkdir, readdir, stat, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { isRunning } from "./process-signals.ts";
import { removeFile } from "../files/remove-file.ts";

/** How long a mark of another machine or container that shares the folder is valid. */
const FOREIGN_MARK_MS = 30 * 24 * 60 * 60 * 1000;

const IMAGE = /^([0-9a-f]{64})\.wasm$/;
/** A mark that an image is in use: its hash, the host name and the process id. */
const MARK = /^([0-9a-f]{64})\.([^.]*)\.(\d+)\.user$/;

/** An image that is being written. */
const UNFINISHED = /^[0-9a-f]{64}\.wasm\.[0-9a-f-]+\.tmp$/;
/** Much longer than it takes to write an image. */
const UNFINISHED_KEPT_MS = 60_000;

/** A private folder of one process, inside a shared one. */
const PRIVATE = /^daybreak-engine-(\d+)-\w+$/;
/** Private folders of this process by their parent; removed when it exits. */
const privateFolders = new Map<string, string>();

/** Marks of this process; removed when it exits, or else by the next daemon. */
const ownMarks = new Set<string>();

/**
 * Marks an image as used by this process, whose engines read it whenever a model is loaded.
 * @param folder holds the images; created when missing
 */
export async function markUsed(folder: string, hash: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const mark = path.join(folder, `${hash}.${hostName()}.${process.pid}.user`);
  await writeFile(mark, "");
  if (ownMarks.size === 0) process.once("exit", removeOwnMarks);
  ownMarks.add(mark);
}

/** Removes images of other versions that no daemon uses anymore, and marks of daemons that are gone. */
export async function removeUnused(folder: string, keptHash: string): Promise<void> {
  const files = await readdir(folder);
  const used = new Set([keptHash]);
  for (const file of files) {
    const [, hash, host, pid] = MARK.exec(file) ?? [];
    if (hash === undefined) continue;
    const mark = path.join(folder, file);
    if (await isHeld(mark, host ?? "", Number(pid))) used.add(hash);
    else await removeFile(mark);
  }
  for (const file of files.filter((name) => UNFINISHED.test(name))) {
    const unfinished = path.join(folder, file);
    if (await isOlderThan(unfinished, UNFINISHED_KEPT_MS)) await removeFile(unfinished);
  }
  for (const file of files) {
    const hash = IMAGE.exec(file)?.[1];
    if (hash !== undefined && !used.has(hash)) await removeFile(path.join(folder, file));
  }
}

async function isHeld(mark: string, host: string, pid: number): Promise<boolean> {
  if (host === hostName()) return isRunning(pid);
  return !(await isOlderThan(mark, FOREIGN_MARK_MS));
}

/** Also true for a file that no longer exists. */
async function isOlderThan(file: string, millis: number): Promise<boolean> {
  const stats = await stat(file).catch(() => undefined);
  return stats === undefined || Date.now() - stats.mtimeMs >= millis;
}

/**
 * A folder inside a shared one that only this user can read, for this process. Removes such folders of processes that
 * were killed.
 */
export function privateFolder(parent: string): string {
  const known = privateFolders.get(parent);
  if (known !== undefined && readable(known)) return known;
  for (const name of readdirSync(parent)) {
    const pid = PRIVATE.exec(name)?.[1];
    if (pid !== undefined && !isRunning(Number(pid))) removeQuietly(path.join(parent, name));
  }
  const folder = mkdtempSync(path.join(parent, `daybreak-engine-${process.pid}-`));
  if (privateFolders.size === 0) process.once("exit", removePrivateFolders);
  privateFolders.set(parent, folder);
  return folder;
}

function readable(folder: string): boolean {
  try {
    readdirSync(folder);
    return true;
  } catch {
    return false; // removed by a cleanup of the shared folder
  }
}

function removePrivateFolders(): void {
  for (const folder of privateFolders.values()) removeQuietly(folder);
}

function removeQuietly(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch {
    // It belongs to another user.
  }
}

/** The host name without dots, which separate the parts of a mark. */
function hostName(): string {
  return os.hostname().replaceAll(/[^\w-]/g, "-");
}

function removeOwnMarks(): void {
  for (const mark of ownMarks) removeQuietly(mark);
}
