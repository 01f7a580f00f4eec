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
import { lstat, readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { codeOrReason } from "../../errors/reason-of.ts";
import { isSystemError, ServiceError } from "../../errors/service-error.ts";
import {
  freeSpace,
  type FreeSpace,
  listNames,
  RESERVE_BYTES,
  writeRefusal,
} from "../../files/file-operations.ts";
import { isOwned } from "../../files/locks.ts";
import { createGgufInspector, type InspectGguf } from "../../models/gguf/inspect-gguf.ts";
import { RepoCache, repoOfFolder } from "../../models/hub/cache/repo-cache.ts";
import { DiskHubStore } from "../../models/hub/disk-hub-store.ts";
import { savedStateSchema } from "../../models/registry/state-file.ts";
import { formatBytes } from "../terminal/format.ts";
import { type Check, type Finding, note, ok, problem } from "./run-checks.ts";

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

const MODELS_CHECK_NAME = "Models";

/** Reads the header of every model. */
const DEADLINE_MS = 20_000;

/**
 * The models on disk, checked by their headers and lengths only: damage further in shows when a model is loaded.
 */
export function modelsCheck(cacheDir: string): Check {
  const inspect = createGgufInspector();
  return {
    name: MODELS_CHECK_NAME,
    deadlineMs: DEADLINE_MS,
    look: async (signal) => {
      const unreadable = await whyUnreadable(cacheDir);
      if (unreadable !== undefined)
        return [note(MODELS_CHECK_NAME, `not known: ${unreadable}`, "See the check of the cache folder.")];
      const store = new DiskHubStore({ cacheDir, hubUrl: "http://localhost" });
      const models = await store.list();
      const findings: Finding[] = [];
      for (const { spec, files } of models) {
        signal.throwIfAborted();
        const why = await damageOf(files, inspect);
        if (why !== undefined) {
          findings.push(
            problem(MODELS_CHECK_NAME, `${spec}: ${why}`, `daybreak rm ${spec}, then daybreak pull ${spec}`),
          );
        }
      }
      findings.push(...(await incompleteFindings(cacheDir)), ...(await ownFileFindings(cacheDir)));
      if (findings.length > 0) return findings;
      const count =
        models.length === 0 ? "none downloaded" : `${models.length} downloaded, none damaged or incomplete`;
      return [ok(MODELS_CHECK_NAME, `${count}, besides those that ship`)];
    },
  };
}

/** Why the folder cannot be listed; undefined when it can, or is not there yet. */
async function whyUnreadable(folder: string): Promise<string | undefined> {
  try {
    await readdir(folder);
    return undefined;
  } catch (error) {
    if (!isSystemError(error)) throw error;
    return error.code === "ENOENT" ? undefined : `the cache folder cannot be read (${codeOrReason(error)})`;
  }
}

async function damageOf(files: readonly string[], inspect: InspectGguf): Promise<string | undefined> {
  try {
    await inspect(files);
    return undefined;
  } catch (error) {
    if (error instanceof ServiceError) return error.message;
    throw error;
  }
}

/** Interrupted downloads, and names whose content is gone. */
async function incompleteFindings(cacheDir: string): Promise<readonly Finding[]> {
  const repos = (await listNames(cacheDir)).map(repoOfFolder).filter((repo) => repo !== undefined);
  const findings = await Promise.all(
    repos.map(async (repo) => {
      const cache = new RepoCache(cacheDir, repo);
      return [await interruptedDownloads(cache), await lostFiles(cache)];
    }),
  );
  return findings.flat(2);
}

async function interruptedDownloads(cache: RepoCache): Promise<readonly Finding[]> {
  let bytes = 0;
  for (const name of await listNames(cache.blobs)) {
    const hex = RepoCache.unfinishedBlob(name);
    // One that a process is working on is not interrupted.
    if (hex === undefined || (await isOwned(cache.lock(hex)))) continue;
    bytes += (await lstat(path.join(cache.blobs, name))).size;
  }
  if (bytes === 0) return [];
  const what = `${cache.repo}: a download was interrupted after ${formatBytes(bytes)}`;
  return [
    note(MODELS_CHECK_NAME, what, `daybreak pull hf:${cache.repo} resumes it; it is removed after a month.`),
  ];
}

async function lostFiles(cache: RepoCache): Promise<readonly Finding[]> {
  const entries = await readdir(cache.snapshots, { recursive: true, withFileTypes: true }).catch(() => []);
  const findings = await Promise.all(
    entries
      .filter((entry) => entry.isSymbolicLink() && /\.gguf$/i.test(entry.name))
      .map(async ({ parentPath, name }): Promise<readonly Finding[]> => {
        if (!(await isGone(path.join(parentPath, name)))) return [];
        return [
          problem(
            MODELS_CHECK_NAME,
            `${cache.repo}: the content of ${name} is gone`,
            `daybreak pull hf:${cache.repo}:${name}`,
          ),
        ];
      }),
  );
  return findings.flat();
}

/** Files of the user's own that were loaded once and are remembered. */
async function ownFileFindings(cacheDir: string): Promise<readonly Finding[]> {
  const files = await rememberedFiles(path.join(cacheDir, "models.json"));
  const findings = await Promise.all(
    files.map(async ({ alias, path: file }): Promise<readonly Finding[]> => {
      if (!(await isGone(file))) return [];
      return [
        note(MODELS_CHECK_NAME, `${alias}: its file ${file} is gone`, `daybreak rm ${alias} forgets it.`),
      ];
    }),
  );
  return findings.flat();
}

async function rememberedFiles(stateFile: string) {
  try {
    return savedStateSchema.parse(JSON.parse(await readFile(stateFile, "utf8"))).files;
  } catch {
    return []; // none yet; one that is damaged is put aside by the daemon, which says so
  }
}

async function isGone(file: string): Promise<boolean> {
  try {
    await stat(file);
    return false;
  } catch (error) {
    return isSystemError(error) && error.code === "ENOENT";
  }
}
