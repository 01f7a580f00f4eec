import { requireOnCi } from "./require-on-ci.ts";

/** Condition for tests to run here, for `test.skipIf(it.isMissing)` and a title that ends in `${it.note}`. */
export interface Need {
  readonly isMissing: boolean;
  /** Why not; empty where nothing is missing. */
  readonly reason: string;
  /** The same for the end of a title, in the form that skipped-tests-reporter.ts looks for. */
  readonly note: string;
}

/**
 * What tests need a part of the machine for: without it they are skipped, and their title says so.
 * @param part - as in "this machine has no …"
 * @throws Error on CI, which has every part
 */
export function need(part: string, isHere: boolean): Need {
  requireOnCi(part, isHere);
  return unless(isHere, `no ${part}`);
}

/** The same for what CI may lack as well. The reason is a few words without brackets. */
export function unless(isHere: boolean, reason: string): Need {
  if (isHere) return { isMissing: false, reason: "", note: "" };
  return { isMissing: true, reason, note: ` [skipped: ${reason}]` };
}

/** Both are needed. */
export function both(one: Need, other: Need): Need {
  return one.isMissing ? one : other;
}

/** Files can be kept from the account that the tests run under. */
export const FILE_RIGHTS = both(
  unless(process.getuid?.() !== 0, "root may read and write everywhere"),
  unless(process.platform !== "win32", "Windows has no such rights of files"),
);
