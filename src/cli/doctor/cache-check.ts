import {
  accessSync,
  constants,
  existsSync,
  linkSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { freeSpace, type FreeSpace, RESERVE_BYTES } from "../../files/free-space.ts";
import { writeRefusal } from "../../files/write-refusal.ts";
import { formatBytes } from "../terminal/quantity.ts";
import { type Check, type Finding, note, ok, problem } from "./check.ts";

const NAME = "Cache folder";

/** A model of seven billion weights takes about as much. */
const SCARCE_BYTES = 5e9;

/** File system calls that test a folder. */
interface CacheTools {
  readonly measure: FreeSpace;
  readonly symlink: typeof symlinkSync;
  readonly link: typeof linkSync;
}

const TOOLS: CacheTools = { measure: freeSpace, symlink: symlinkSync, link: linkSync };

/** The folder of models: whether it is writable, has free space, and is on a file system with links. */
export function cacheCheck(folder: string, tools: CacheTools = TOOLS): Check {
  return { name: NAME, deadlineMs: 10_000, look: async () => [await look(folder, tools)] };
}

async function look(folder: string, tools: CacheTools): Promise<Finding> {
  const isThere = existsSync(folder);
  const existing = isThere ? folder : nearestExisting(folder);
  let links: Links;
  try {
    // A missing folder is not created: a check changes nothing.
    links = isThere ? tryLinks(folder, tools) : "symbolic";
    // With its slash only a folder passes.
    accessSync(path.join(existing, path.sep), constants.W_OK);
  } catch (error) {
    return problem(
      NAME,
      `${folder} cannot be ${isThere ? "written" : "created"}: ${writeRefusal(error) ?? String(error)}`,
      "Make the folder writable for this account, or choose another (cache_dir, SERVICE_CACHE_DIR).",
    );
  }
  const free = await tools.measure(existing);
  const room = free === undefined ? "" : `, ${formatBytes(free)} free`;
  const what = `${folder}${isThere ? "" : " (created when needed)"}${room}`;
  if (free !== undefined && free < RESERVE_BYTES) {
    return problem(
      NAME,
      `${what}: too little to download anything`,
      "Free space with daybreak rm <model>, or choose another folder.",
    );
  }
  if (links === "none") {
    return note(
      NAME,
      `${what}; its file system does not support links`,
      "Models can be downloaded, but versions of a model cannot share files and take more space. Prefer a folder on another file system.",
    );
  }
  if (free !== undefined && free < SCARCE_BYTES) {
    return note(
      NAME,
      `${what}: enough for small models only`,
      "Free space with daybreak rm <model>, or choose another folder.",
    );
  }
  return ok(NAME, what);
}

type Links = "symbolic" | "names" | "none";

/** Tries what downloads do in a temporary folder, which it removes. Throws when nothing can be written. */
function tryLinks(folder: string, { symlink, link }: CacheTools): Links {
  const trial = mkdtempSync(path.join(folder, ".doctor-"));
  try {
    const file = path.join(trial, "file");
    writeFileSync(file, "content");
    if (works(() => symlink("file", path.join(trial, "symbolic")))) return "symbolic";
    return works(() => link(file, path.join(trial, "name"))) ? "names" : "none";
  } finally {
    rmSync(trial, { recursive: true, force: true });
  }
}

function works(attempt: () => void): boolean {
  try {
    attempt();
    return true;
  } catch {
    return false;
  }
}

function nearestExisting(folder: string): string {
  const parent = path.dirname(folder);
  return existsSync(parent) || parent === folder ? parent : nearestExisting(parent);
}
