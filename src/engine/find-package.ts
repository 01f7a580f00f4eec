import { existsSync, lstatSync, readlinkSync, realpathSync } from "node:fs";
import path from "node:path";

interface InstalledPackage {
  /** Real path of the package. */
  readonly folder: string;
  /** Links that Node follows to get there; only some package managers, such as pnpm, create links. */
  readonly links: readonly string[];
}

/**
 * The paths that a process must be allowed to read in order to import an installed package. The links must come first
 * among its permissions: Node 26.10 drops a permission for a link when it already has one for a path inside it.
 * @throws Error when the package is not installed
 */
export function findPackage(name: string): InstalledPackage {
  for (let above = import.meta.dirname; ; above = path.dirname(above)) {
    const found = path.join(above, "node_modules", name);
    if (existsSync(found)) return { folder: realpathSync(found), links: linksOn(found) };
    if (above === path.dirname(above)) throw new Error(`The package ${name} is not installed.`);
  }
}

/** All links on the way to a file, including the file itself. */
function linksOn(file: string): string[] {
  const link = upwards(file).findLast((each) => lstatSync(each).isSymbolicLink());
  if (link === undefined) return [];
  const target = path.resolve(path.dirname(link), readlinkSync(link));
  return [link, ...linksOn(path.join(target, path.relative(link, file)))];
}

/** A path and its parent folders, the outermost last. */
function upwards(file: string): string[] {
  const parent = path.dirname(file);
  return parent === file ? [file] : [file, ...upwards(parent)];
}
