/**
 * Fails on CI, which is a Linux with every part that these tests need: a skip would report success for tests that did
 * not run. On other machines the tests that need the part are skipped.
 * @param part - as in "CI has no …"
 * @throws Error when CI lacks it
 */
export function requireOnCi(part: string, isHere: boolean): void {
  if (isHere || !process.env["CI"] || process.platform !== "linux") return;
  throw new Error(`CI has no ${part}: the tests that need it would be skipped.`);
}
