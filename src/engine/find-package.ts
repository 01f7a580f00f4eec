import { existsSync, lstatSync, readlinkSync, realpathSync } from "node:fs";
import path from "node:path";

interface InstalledPackage {
  /** Where the package really is. */
  readonly folder: string;
  /** What Node follows to get there; none but where packages are links, as pnpm makes them. */
  readonly links: readonly string[];
}

/**
 * Where a process that imports an installed package has to read. The links come first among its rights: Node 26.10
 * forgets about them when it has learned about something in them.
 * @param from the folder of the code that imports it
 * @throws Error when the package is not installed
 */
export function findPackage(name: string, from: string = import.meta.dirname): InstalledPackage {
  for (let above = from; ; above = path.dirname(above)) {
    const found = path.join(above, "node_modules", name);
    if (existsSync(found)) return { folder: realpathSync(found), links: linksOn(found) };
    if (above === path.dirname(above)) throw new Error(`The package ${name} is not installed.`);
  }
}

/** All links that are followed on the way to a file, the file itself included. */
function linksOn(file: string): string[] {
  const link = upwards(file).findLast((each) => lstatSync(each).isSymbolicLink());
  if (link === undefined) return [];
  const target = path.resolve(path.dirname(link), readlinkSync(link));
  return [link, ...linksOn(path.join(target, path.relative(link, file)))];
}

/** A path and the folders it is in, the outermost last. */
function upwards(file: string): string[] {
  const parent = path.dirname(file);
  return parent === file ? [file] : [file, ...upwards(parent)];
}
