/**
 * By which an engine says that it has more rights than it was started with, and ended for that. Not one of Node's own
 * codes, which are small, and none that stands for a signal.
 */
export const UNFENCED_EXIT_CODE = 78;

/** Message for whoever requested the model. */
export const UNFENCED_REASON =
  "The model cannot be loaded: the program that runs its engine has no permission model, or has it switched off, and would give a model file all of this account's rights. Start Daybreak with Node 24 or later.";

/**
 * True when Node keeps this process from what no engine may do. Other runtimes know neither the model nor the flag that
 * switches it on, and drop that without a word.
 */
export function isFencedIn(permission: Permission | undefined = process.permission): boolean {
  return permission !== undefined && !FORBIDDEN.some((right) => permission.has(right));
}

type Permission = Pick<typeof process.permission, "has">;

const FORBIDDEN = ["fs.read", "fs.write", "child"] as const;
