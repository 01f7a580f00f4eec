/**
 * Exit code of an engine that found itself without the restrictions it was started with. Not one of Node's own codes,
 * which are smaller, nor one that means a signal.
 */
export const UNRESTRICTED_EXIT_CODE = 78;

/** The error message for the client. */
export const UNRESTRICTED_REASON =
  "The model cannot be loaded: the runtime of its engine lacks Node's permission model, or it is turned off, so a model file would get all rights of this user. Start Daybreak with Node 24.20 or later.";

/**
 * True when the permission model restricts this process. Other runtimes do not have it and silently ignore the flag
 * that turns it on.
 */
export function isRestricted(permission: Permission | undefined = process.permission): boolean {
  return permission !== undefined && !FORBIDDEN.some((right) => permission.has(right));
}

type Permission = Pick<typeof process.permission, "has">;

const FORBIDDEN = ["fs.read", "fs.write", "child"] as const;
