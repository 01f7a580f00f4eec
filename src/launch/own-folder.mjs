// @ts-check
import { accessSync, constants, lstatSync, mkdirSync, statSync } from "node:fs";
import os from "node:os";
import path from "node:path";

const OTHERS_MAY_WRITE = 0o022;
/** In a folder with this bit, users cannot move each other's files. */
const STICKY = 0o1000;
const FOR_OTHERS = 0o077;

/**
 * True if a folder is readable, or is missing and can be created. Creates nothing.
 * @param {string} folder
 * @returns {boolean}
 */
export function canUseFolder(folder) {
  for (let at = folder; ; at = path.dirname(at)) {
    try {
      if (!statSync(at).isDirectory()) return false;
      accessSync(at, at === folder ? constants.R_OK | constants.X_OK : constants.W_OK | constants.X_OK);
      return true;
    } catch (error) {
      const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
      if (!isMissing || at === path.dirname(at)) return false;
    }
  }
}

/**
 * Returns a private folder inside a folder where all users may write; creates it if missing. An existing one is used only
 * if it is a folder, belongs to this user and is closed to others, because any user may have created it.
 * @param {readonly string[]} [parents]
 * @returns {string | undefined} undefined when there is none
 */
export function privateTemporaryFolder(parents = [os.tmpdir(), "/dev/shm"]) {
  const uid = process.getuid?.();
  if (uid === undefined) return undefined;
  return parents
    .map((parent) => path.join(parent, `daybreak-${uid}`))
    .find((folder) => isPrivate(folder, uid));
}

/**
 * @param {string} folder
 * @param {number} uid
 */
function isPrivate(folder, uid) {
  try {
    const around = statSync(path.dirname(folder)).mode;
    if ((around & OTHERS_MAY_WRITE) !== 0 && (around & STICKY) === 0) return false;
    makeFolder(folder);
    const stats = lstatSync(folder);
    return stats.isDirectory() && stats.uid === uid && (stats.mode & FOR_OTHERS) === 0;
  } catch {
    return false;
  }
}

/** @param {string} folder */
function makeFolder(folder) {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch {
    // It exists already, or the next access fails.
  }
}
