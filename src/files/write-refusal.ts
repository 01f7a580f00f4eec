import { exhaustedResource, isSystemError } from "../errors/exhausted-resource.ts";
import { codeOrReason } from "../errors/reason-of.ts";

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full",
  EDQUOT: "this user's disk quota is used up",
  EROFS: "it is read-only",
  EACCES: "this user is not allowed to write there",
  EPERM: "this user is not allowed to write there",
  ENOTDIR: "a part of its path is not a folder",
  EEXIST: "a part of its path is not a folder",
  EIO: "the disk reports an error",
};

/** Why a folder is not writable, to follow its name; undefined for an error that is not the system's. */
export function writeRefusal(error: unknown): string | undefined {
  if (!isSystemError(error)) return undefined;
  return REASONS[error.code] ?? exhaustedResource(error) ?? `the system refuses it (${codeOrReason(error)})`;
}
