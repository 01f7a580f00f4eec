// @ts-check

import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";

/**
 * File that records for which programs a trial has succeeded, because a trial takes as long as a start.
 * @typedef {object} TrialRecord
 * @property {string} folder
 * @property {string} name
 */

/**
 * True if the trial has succeeded before with the same files.
 * @param {TrialRecord} record
 * @param {readonly string[]} files the program and the code that tries it
 * @returns {boolean}
 */
export function hasSucceeded({ folder, name }, files) {
  try {
    return readFileSync(path.join(folder, name), "utf8") === describe(files);
  } catch {
    return false; // not tried yet, or the folder is not writable
  }
}

/**
 * Records a successful trial.
 * @param {TrialRecord} record
 * @param {readonly string[]} files
 */
export function recordSuccess({ folder, name }, files) {
  try {
    mkdirSync(folder, { recursive: true });
    writeFileSync(path.join(folder, name), describe(files));
  } catch {
    // The cache folder is not writable; the next start tries again.
  }
}

/** @param {readonly string[]} files */
function describe(files) {
  return files
    .map((file) => {
      const { size, mtimeMs } = statSync(file);
      return `${file}\n${size}\n${mtimeMs}\n`;
    })
    .join("");
}
