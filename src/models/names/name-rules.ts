import { ServiceError } from "../../errors/service-error.ts";

/**
 * Characters allowed in the parts of names. Names become parts of paths, URLs, log lines and metrics, so these are
 * allow-lists. Names are not decoded or normalized after these checks.
 */

/** Maximum length of a model's name and of its tag; both fit into a file name. */
const MAX_PART_LENGTH = 128;
/** Maximum length of an owner and of a repository on the hub. */
const MAX_HUB_PART_LENGTH = 96;
/** Maximum length of a path segment (NAME_MAX of Linux, macOS and NTFS). */
const MAX_SEGMENT_BYTES = 255;
/** Maximum segments of a path or branch name; actual ones have two or three. */
const MAX_SEGMENTS = 16;
/** Maximum characters of a name that an error quotes. */
const MAX_QUOTED_LENGTH = 100;

const PLAIN_PART = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?$/;
/** Also a segment of a revision. */
const HUB_PART = /^[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?$/;

/** Control and invisible characters, all separators except the space, private and unassigned characters. */
const INVISIBLE = /\p{C}|\p{Zl}|\p{Zp}|(?! )\p{Zs}/u;
/** Characters that Windows reserves or that are special in URLs. */
const UNSAFE_IN_FILE = /[<>:"|?*\\%#]/;
/** Names that Windows maps to devices, with any extension, also before spaces. */
const DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³]) *(?:\.|$)/i;

/** True if the text has an invisible character or half a surrogate pair. */
export function hasInvisible(text: string): boolean {
  return !text.isWellFormed() || INVISIBLE.test(text);
}

export function isDeviceName(fileName: string): boolean {
  return DEVICE.test(fileName);
}

function isPart(text: string, pattern: RegExp, maxLength: number): boolean {
  return text.length <= maxLength && pattern.test(text) && !text.includes("..") && !isDeviceName(text);
}

/** True for a valid name or tag of a model. */
export function isPlainPart(text: string): boolean {
  return isPart(text, PLAIN_PART, MAX_PART_LENGTH);
}

/** True for a valid name of a model, with or without a tag. */
export function isModelName(text: string): boolean {
  const parts = text.split(":");
  return parts.length <= 2 && parts.every(isPlainPart);
}

/** True for a valid owner or repository of the hub, without `--`, which separates them in folder names of the cache. */
export function isHubPart(text: string): boolean {
  return isPart(text, HUB_PART, MAX_HUB_PART_LENGTH) && !text.includes("--");
}

/** True if the text is an owner/repository that is valid on the hub and safe in paths. */
export function isRepoName(repo: string): boolean {
  const parts = repo.split("/");
  return parts.length === 2 && parts.every(isHubPart);
}

/** True for a valid branch, tag or commit. */
export function isRevision(text: string): boolean {
  const segments = text.split("/");
  return (
    segments.length <= MAX_SEGMENTS &&
    text.length <= MAX_SEGMENT_BYTES &&
    segments.every((segment) => isPart(segment, HUB_PART, MAX_SEGMENT_BYTES))
  );
}

/**
 * True for the path of a file inside a repository, separated by `/`, that is safe in the cache folder on every
 * platform: no file system or URL interprets it differently.
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
    // Excludes "." and "..", too.
    !segment.startsWith(".") &&
    !/[. ]$/.test(segment) &&
    !UNSAFE_IN_FILE.test(segment) &&
    !isDeviceName(segment)
  );
}

/** Returns a preferred name, with a number from 2 on if it is taken. */
export function freeName(preferred: string, isTaken: (name: string) => boolean): string {
  let name = preferred;
  for (let number = 2; isTaken(name); number++) name = `${preferred}-${number}`;
  return name;
}

/** Creates the error for an invalid name; `reason` is a sentence without its final period. */
export function invalidName(name: string, reason: string): ServiceError {
  const quoted = name.length > MAX_QUOTED_LENGTH ? `${name.slice(0, MAX_QUOTED_LENGTH)}…` : name;
  return new ServiceError("invalid_model_name", `${JSON.stringify(quoted)} is not a model name: ${reason}.`);
}
