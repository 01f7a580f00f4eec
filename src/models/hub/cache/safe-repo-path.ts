/** File systems refuse a longer name; NAME_MAX of Linux, macOS and NTFS alike. */
const MAX_SEGMENT_BYTES = 255;

/** Repositories nest a folder or two; a listing that goes deeper is not one of models. */
const MAX_SEGMENTS = 16;

/** Control characters, what Windows reserves, and what a URL gives a meaning of its own. */
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const ODD_CHARACTER = /[\u0000-\u001f\u007f-\u009f<>:"|?*\\%#]/;

/** Names that Windows maps to devices, with any extension. */
const RESERVED_NAME = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|$)/i;

/**
 * True when a path from a repository's listing may become a path below the cache folder, on every platform: no
 * `..`, nothing absolute, no drive letter, no device, nothing that a file system or URL would read differently.
 */
export function isSafeRepoPath(path: string): boolean {
  const segments = path.split("/");
  return segments.length <= MAX_SEGMENTS && segments.every(isSafeSegment);
}

function isSafeSegment(segment: string): boolean {
  return (
    segment !== "" &&
    segment === segment.normalize("NFC") &&
    segment.isWellFormed() &&
    Buffer.byteLength(segment) <= MAX_SEGMENT_BYTES &&
    // A leading dot covers "." and ".." and keeps the cache free of hidden files.
    !segment.startsWith(".") &&
    !/[. ]$/.test(segment) &&
    !ODD_CHARACTER.test(segment) &&
    !RESERVED_NAME.test(segment)
  );
}
