// @ts-check
import { accessSync, closeSync, constants, existsSync, openSync, readSync, statSync } from "node:fs";

/** Linux reads this much of a script to find its interpreter; other systems read more. */
const HEAD_BYTES = 256;
/** The interpreter, which a blank, the end of the line or the end of the file follows. */
const FIRST_LINE = /^#![ \t]*([^ \t\n]+)(?=[ \t\n]|$)/;
/** So many scripts in a row, each the interpreter of the one before, does Linux allow. */
const MOST_SCRIPTS = 4;

const ELF = "\x7fELF";
/** Of an ELF file for 64 bits, which all programs are that run Daybreak, these fields are read. */
const SEGMENTS_AT = 32;
const SEGMENT_BYTES = 56;
const SEGMENT_COUNT_AT = 56;
/** The type of the segment that holds the loader's path. */
const LOADER_SEGMENT = 3;
const MOST_LOADER_BYTES = 4096;

/** With it begin programs of macOS for several processors; those of the system are for all that it runs on. */
const UNIVERSAL = "\xca\xfe\xba\xbe";

/**
 * A part that a program cannot be started without: a script's interpreter, an ELF program's loader.
 * @typedef {{ readonly what: "interpreter" | "loader", readonly path: string }} ProgramPart
 */

/**
 * Whether the system can start this file, as far as the files tell; false also where they do not.
 * @param {string} file
 * @param {string} [like] a program of this machine, which all others have to resemble
 * @returns {boolean}
 */
export function surelyStarts(file, like = process.execPath) {
  try {
    const parts = partsOf(file);
    const program = parts.findLast(({ what }) => what === "interpreter")?.path ?? file;
    if (![file, ...parts.map((part) => part.path)].every(isExecutable)) return false;
    const kind = kindOf(program);
    return kind === kindOf(like) || (process.platform === "darwin" && kind.startsWith(UNIVERSAL));
  } catch {
    return false;
  }
}

/**
 * The part that a program needs and this machine lacks; undefined if there is none, or that is unknown.
 * @param {string} file
 * @returns {ProgramPart | undefined}
 */
export function missingPart(file) {
  try {
    return partsOf(file).find(({ path }) => !existsSync(path));
  } catch {
    return undefined;
  }
}

/** @param {string} file */
function isExecutable(file) {
  accessSync(file, constants.X_OK);
  return statSync(file).isFile();
}

/**
 * The interpreter, that one's interpreter or loader, and so on, up to one that does not exist.
 * @param {string} file
 * @returns {ProgramPart[]}
 */
function partsOf(file) {
  /** @type {ProgramPart[]} */
  const parts = [];
  let part = partOf(file);
  while (part) {
    if (parts.push(part) > MOST_SCRIPTS + 1) throw new Error("too many interpreters");
    if (part.what === "loader" || !existsSync(part.path)) break;
    part = partOf(part.path);
  }
  return parts;
}

/**
 * @param {string} file
 * @returns {ProgramPart | undefined}
 */
function partOf(file) {
  const head = read(file, 0, HEAD_BYTES);
  const path = FIRST_LINE.exec(head.toString())?.[1];
  if (path !== undefined) return { what: "interpreter", path };
  if (!isElf(head)) return undefined;
  const segments = read(
    file,
    Number(head.readBigUInt64LE(SEGMENTS_AT)),
    head.readUInt16LE(SEGMENT_COUNT_AT) * SEGMENT_BYTES,
  );
  for (let at = 0; at < segments.length; at += SEGMENT_BYTES) {
    if (segments.readUInt32LE(at) !== LOADER_SEGMENT) continue;
    const bytes = Math.min(Number(segments.readBigUInt64LE(at + 32)), MOST_LOADER_BYTES);
    const loader = read(file, Number(segments.readBigUInt64LE(at + 8)), bytes);
    return { what: "loader", path: loader.toString().replace(/\0.*$/s, "") };
  }
  return undefined;
}

/** What programs for the same system and processor have in common. */
function kindOf(/** @type {string} */ file) {
  const head = read(file, 0, HEAD_BYTES);
  // The magic number, the width and the order of bytes, and the processor; for macOS the magic number and the processor.
  return isElf(head)
    ? head.toString("latin1", 0, 6) + head.toString("latin1", 18, 20)
    : head.toString("latin1", 0, 8);
}

/** @param {Buffer} head */
function isElf(head) {
  return head.toString("latin1", 0, ELF.length) === ELF;
}

/**
 * @param {string} file
 * @param {number} position
 * @param {number} length
 * @returns {Buffer} shorter where the file ends
 */
function read(file, position, length) {
  const fd = openSync(file, "r");
  try {
    const bytes = Buffer.alloc(length);
    return bytes.subarray(0, readSync(fd, bytes, 0, length, position));
  } finally {
    closeSync(fd);
  }
}
