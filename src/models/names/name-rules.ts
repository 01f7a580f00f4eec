import { ServiceError } from "../../errors/service-error.ts";

/**
 * What the parts of names may be made of. Names become parts of paths, addresses, log lines and metrics, so what is
 * allowed is listed, not what is forbidden; nothing is decoded or normalized after these rules have been applied.
 */

/** Longest name of a model, without its tag, and longest tag: both fit a file name. */
const MAX_PART_LENGTH = 128;
/** Longest owner and longest repository on the hub. */
const MAX_HUB_PART_LENGTH = 96;
/** File systems refuse a longer part of a path (NAME_MAX of Linux, macOS and NTFS). */
const MAX_SEGMENT_BYTES = 255;
/** Repositories nest a folder or two, branches as many. */
const MAX_SEGMENTS = 16;

const PLAIN_PART = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?$/;
const HUB_PART = /^[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?$/;
const REVISION_SEGMENT = /^[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?$/;

/** Control and invisible characters, all separators but the plain space, private and unassigned ones. */
const INVISIBLE = /\p{C}|\p{Zl}|\p{Zp}|(?! )\p{Zs}/u;
/** What Windows reserves and what an address gives a meaning of its own. */
const ODD_IN_FILE = /[<>:"|?*\\%#]/;
/** Names that Windows maps to devices, with any extension, also behind spaces. */
const DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³]) *(?:\.|$)/i;

/** True for text with a character that cannot be seen, or with half of one. */
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

/** An owner or a repository of the hub; `--` is what the cache's folders separate the two with. */
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
 * The path of a file inside a repository, with `/` between its parts: one that may become a path below the cache
 * folder on every platform, with nothing that a file system or an address would read differently.
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
    // A leading dot covers "." and ".." too.
    !segment.startsWith(".") &&
    !/[. ]$/.test(segment) &&
    !ODD_IN_FILE.test(segment) &&
    !isDeviceName(segment)
  );
}

/** Longest part of a name that an error repeats. */
const SHOWN_LENGTH = 100;

/** The error for text that cannot name a model; `why` is a sentence without its full stop. */
export function invalidName(name: string, why: string): ServiceError {
  const shown = name.length > SHOWN_LENGTH ? `${name.slice(0, SHOWN_LENGTH)}…` : name;
  return new ServiceError("invalid_model_name", `${JSON.stringify(shown)} is not a model name: ${why}.`);
}
