/**
 * Whether a version comes after another, as semver.org orders them. The numbers of a prerelease are compared as numbers,
 * and a prerelease comes before its release.
 */
export function isNewer(version: string, than: string): boolean {
  const [a, b] = [parts(version), parts(than)];
  return (compare(a.core, b.core) || comparePrereleases(a.prerelease, b.prerelease)) > 0;
}

function parts(version: string): { core: readonly string[]; prerelease: readonly string[] } {
  const [text = ""] = version.split("+");
  const [core = "", ...prerelease] = text.split("-");
  return {
    core: core.split("."),
    prerelease: prerelease.length === 0 ? [] : prerelease.join("-").split("."),
  };
}

function comparePrereleases(a: readonly string[], b: readonly string[]): number {
  if (a.length === 0 || b.length === 0) return b.length - a.length;
  return compare(a, b);
}

function compare(a: readonly string[], b: readonly string[]): number {
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const [x, y] = [a[index], b[index]];
    if (x === undefined || y === undefined) return x === undefined ? -1 : 1;
    const [m, n] = [Number(x), Number(y)];
    const order = Number.isNaN(m) || Number.isNaN(n) ? compareTexts(x, y, m, n) : m - n;
    if (order !== 0) return order;
  }
  return 0;
}

/** Numbers come before words. */
function compareTexts(x: string, y: string, m: number, n: number): number {
  if (Number.isNaN(m) !== Number.isNaN(n)) return Number.isNaN(m) ? 1 : -1;
  return x < y ? -1 : x > y ? 1 : 0;
}
