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
import { writeRefusal } from "../../files/write-refusal.ts";
import { freeSpace, type FreeSpace } from "../../models/hub/download/snapshot-pull.ts";
import { formatBytes } from "../terminal/quantity.ts";
import { type Check, type Finding, note, ok, problem } from "./check.ts";

const NAME = "Cache folder";

/** Downloads leave so much to others. */
const RESERVE_BYTES = 256 * 1024 * 1024;
/** A model of seven billion weights takes about as much. */
const SCARCE_BYTES = 5e9;

/** What tries a folder out. */
export interface CacheTools {
  readonly measure: FreeSpace;
  readonly symlink: typeof symlinkSync;
  readonly link: typeof linkSync;
}

const TOOLS: CacheTools = { measure: freeSpace, symlink: symlinkSync, link: linkSync };

/** The folder of models: whether it can be written, has room, and is on a file system with links. */
export function cacheCheck(folder: string, tools: CacheTools = TOOLS): Check {
  return { name: NAME, deadlineMs: 10_000, look: async () => [await look(folder, tools)] };
}

async function look(folder: string, tools: CacheTools): Promise<Finding> {
  const isThere = existsSync(folder);
  const existing = isThere ? folder : nearestExisting(folder);
  let links: Links;
  try {
    // What is not there yet is not made: whoever asks how things are changes nothing.
    links = isThere ? tryLinks(folder, tools) : "symbolic";
    // With its slash only a folder passes.
    accessSync(path.join(existing, path.sep), constants.W_OK);
  } catch (error) {
    return problem(
      NAME,
      `${folder} cannot be ${isThere ? "written" : "made"}: ${writeRefusal(error) ?? String(error)}`,
      "See that a folder is there that this account may write to, or choose another (cache_dir, SERVICE_CACHE_DIR).",
    );
  }
  const free = await tools.measure(existing);
  const room = free === undefined ? "" : `, ${formatBytes(free)} free`;
  const what = `${folder}${isThere ? "" : " (made when it is needed)"}${room}`;
  if (free !== undefined && free < RESERVE_BYTES) {
    return problem(
      NAME,
      `${what}: nothing can be downloaded`,
      "Make room: daybreak rm <model>, or choose another folder.",
    );
  }
  if (links === "none") {
    return note(
      NAME,
      `${what}; its file system has no links`,
      "Models can be downloaded, but versions that share files take the room of each; a folder on another file system is better.",
    );
  }
  if (free !== undefined && free < SCARCE_BYTES) {
    return note(
      NAME,
      `${what}: enough for small models only`,
      "Make room: daybreak rm <model>, or choose another folder.",
    );
  }
  return ok(NAME, what);
}

type Links = "symbolic" | "names" | "none";

/** Tries in a folder of its own, which it removes, what downloads do. Throws when nothing can be written. */
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
