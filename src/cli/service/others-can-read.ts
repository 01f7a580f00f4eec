import { statSync } from "node:fs";
import path from "node:path";

const OTHERS_READ = 0o004;
const OTHERS_ENTER = 0o001;

/** The first folder on the way to a file, or the file itself, that accounts other than its owner cannot use. */
export function closedToOthers(
  file: string,
  modeOf: (file: string) => number = (each) => statSync(each).mode,
): string | undefined {
  const folders: string[] = [];
  for (let folder = path.dirname(file); ; folder = path.dirname(folder)) {
    folders.unshift(folder);
    if (folder === path.dirname(folder)) break;
  }
  const closed = folders.find((folder) => (modeOf(folder) & OTHERS_ENTER) === 0);
  return closed ?? ((modeOf(file) & OTHERS_READ) === 0 ? file : undefined);
}
