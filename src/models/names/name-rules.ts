import { ServiceError } from "../../errors/service-error.ts";

/**
 * Characters allowed in the parts of names. Names become parts of paths, URLs, log lines and metrics, so these are lists of
 * what is allowed, not of what is forbidden. Nothing is decoded or normalized after these checks.
 */

/** Longest name of a model without its tag, and longest tag; both fit into a file name. */
const MAX_PART_LENGTH = 128;
/** Longest owner and longest repository on the hub. */
const MAX_HUB_PART_LENGTH = 96;
/** Longest path segment that file systems allow (NAME_MAX of Linux, macOS and NTFS). */
const MAX_SEGMENT_BYTES = 255;
/** Repositories nest one or two folders, and so do branch names. */
const MAX_SEGMENTS = 16;
/** Longest part of a name that an error repeats. */
const SHOWN_LENGTH = 100;

const PLAIN_PART = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?$/;
const HUB_PART = /^[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?$/;
const REVISION_SEGMENT = /^[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?$/;

/** Control and invisible characters, all separators except the plain space, private and unassigned characters. */
const INVISIBLE = /\p{C}|\p{Zl}|\p{Zp}|(?! )\p{Zs}/u;
/** Characters that Windows reserves or that are special in URLs. */
const ODD_IN_FILE = /[<>:"|?*\\%#]/;
/** Names that Windows maps to devices, with any extension, also before spaces. */
const DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³]) *(?:\.|$)/i;

/** Whether the text contains an invisible character or half a surrogate pair. */
export function hasInvisible(text: string): boolean {
  return !text.isWellFormed() || INVISIBLE.test(text);
}

export function isDeviceName(fileName: string): boolean {
  return DEVICE.test(fileName);
}

/** A model's name or its tag. */
export function isPlainPart(text: string): boolean {
  return (
    text.length <= MAX_PART_LENGTH && PLAIN_PART.test(text) && !text.includes("..") && !isDeviceName(text)
  );
}

/** An owner or a repository of the hub; `--` separates the two in the cache's folder names. */
export function isHubPart(text: string): boolean {
  return (
    text.length <= MAX_HUB_PART_LENGTH &&
    HUB_PART.test(text) &&
    !text.includes("..") &&
    !text.includes("--") &&
    !isDeviceName(text)
  );
}

/** A branch, tag or commit. */
export function isRevision(text: string): boolean {
  const segments = text.split("/");
  return (
    segments.length <= MAX_SEGMENTS &&
    text.length <= MAX_SEGMENT_BYTES &&
    segments.every(
      (segment) => REVISION_SEGMENT.test(segment) && !segment.includes("..") && !isDeviceName(segment),
    )
  );
}

/**
 * The path of a file inside a repository, separated by `/`, that is safe as a path in the cache folder on every platform:
 * no file system or URL interprets it differently.
 */
export function isRepoFile(text: string): boolean {
  const segments = text.split("/");
  return segments.length <= MAX_SEGMENTS && segments.every(isFileSegment);
}

function isFileSegment(segment: string): boolean {
  return (
    segment !== "" &&
    segment === segment.normalize("NFC") &&
    !hasInvisible(segment) &&
    Buffer.byteLength(segment) <= MAX_SEGMENT_BYTES &&
    // A leading dot includes "." and "..".
    !segment.startsWith(".") &&
    !/[. ]$/.test(segment) &&
    !ODD_IN_FILE.test(segment) &&
    !isDeviceName(segment)
  );
}

/** The error for a text that is not a valid name; `why` is a sentence without its final period. */
export function invalidName(name: string, why: string): ServiceError {
  const shown = name.length > SHOWN_LENGTH ? `${name.slice(0, SHOWN_LENGTH)}…` : name;
  return new ServiceError("invalid_model_name", `${JSON.stringify(shown)} is not a model name: ${why}.`);
}
