import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type Zippable, zipSync } from "fflate";
import { create, type WriteEntry } from "tar";

/** Time of every file, the earliest that zip can store: a zip file has local time, a tar file UTC. */
const ZIP_TIME = new Date(1980, 0, 1);
const TAR_TIME = new Date(Date.UTC(1980, 0, 1));

/** A higher level takes three times as long and saves one percent. */
const LEVEL = 6;

/** Unix attributes in a zip file: the mode in the upper half. */
const UNIX = 3;
const FILE_TYPE = 0o100000;
const MODE_FACTOR = 2 ** 16;

/**
 * Writes a folder into an archive, itself included: a zip file, or by any other name a compressed tar file. Order,
 * times, owners and modes are always the same, so two archives of the same files are the same bytes.
 * @param folder its last part is the folder in the archive
 */
export async function writeArchive(folder: string, archive: string): Promise<void> {
  const parent = path.dirname(folder);
  const files = filesBelow(folder).map((file) => path.relative(parent, file).split(path.sep).join("/"));
  if (archive.endsWith(".zip")) return writeFileSync(archive, zip(parent, files));
  // Portable: without user names and anything else that depends on the machine.
  const options = { cwd: parent, gzip: { level: LEVEL }, portable: true, mtime: TAR_TIME };
  await create({ file: archive, ...options, onWriteEntry: simplifyMode }, files);
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const file = path.join(folder, entry.name);
      return entry.isDirectory() ? filesBelow(file) : [file];
    });
}

function zip(parent: string, files: readonly string[]): Uint8Array {
  const entries: Zippable = {};
  for (const file of files) {
    const mode = FILE_TYPE | plainMode(statSync(path.join(parent, file)).mode);
    const attributes = { os: UNIX, attrs: mode * MODE_FACTOR };
    entries[file] = [readFileSync(path.join(parent, file)), { level: LEVEL, mtime: ZIP_TIME, ...attributes }];
  }
  return zipSync(entries);
}

function simplifyMode({ stat }: WriteEntry): void {
  if (stat) stat.mode = plainMode(stat.mode);
}

/** Programs can be run by everybody, and other files read, whatever the umask was that they were written with. */
function plainMode(mode: number): number {
  return (mode & 0o111) === 0 ? 0o644 : 0o755;
}
