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
import { codeOrReason, isSystemError, ServiceError } from "../../errors/service-error.ts";
import {
  freeSpace,
  type FreeSpace,
  listNames,
  RESERVE_BYTES,
  writeRefusal,
} from "../../files/file-operations.ts";
import { isClaimed } from "../../files/locks.ts";
import { createGgufInspector, type InspectGguf } from "../../models/gguf/inspect-gguf.ts";
import { RepoCache, repoOfFolder } from "../../models/hub/cache/repo-cache.ts";
import { DiskHubStore } from "../../models/hub/disk-hub-store.ts";
import { savedStateSchema } from "../../models/registry/state-file.ts";
import { formatBytes } from "../../json/quantities.ts";
import { type Check, createCheck, note, ok, problem, type Result } from "./run-checks.ts";

/** Space for a model of seven billion weights. */
const SCARCE_BYTES = 5e9;

/** File system calls of the check; tests replace them. */
interface FileSystemCalls {
  readonly measure: FreeSpace;
  readonly symlink: typeof symlinkSync;
  readonly link: typeof linkSync;
}

const REAL_CALLS: FileSystemCalls = { measure: freeSpace, symlink: symlinkSync, link: linkSync };

/** Checks that the cache folder is writable, has free space, and supports links. */
export function cacheCheck(folder: string, calls: FileSystemCalls = REAL_CALLS): Check {
  return createCheck("Cache folder", async () => await look(folder, calls), 10_000);
}

async function look(folder: string, calls: FileSystemCalls): Promise<Result> {
  const exists = existsSync(folder);
  const existing = exists ? folder : nearestExisting(folder);
  let links: Links;
  try {
    // A missing folder is not created: a check changes nothing.
    links = exists ? tryLinks(folder, calls) : "symbolic";
    // The final slash makes access fail for a file.
    accessSync(path.join(existing, path.sep), constants.W_OK);
  } catch (error) {
    return problem(
      `${folder} cannot be ${exists ? "written" : "created"}: ${writeRefusal(error) ?? String(error)}`,
      "Make the folder writable for this account, or choose another (cache_dir, SERVICE_CACHE_DIR).",
    );
  }
  const free = await calls.measure(existing);
  const space = free === undefined ? "" : `, ${formatBytes(free)} free`;
  const what = `${folder}${exists ? "" : " (created when needed)"}${space}`;
  if (free !== undefined && free < RESERVE_BYTES) {
    return problem(
      `${what}: too little to download anything`,
      "Free space with daybreak rm <model>, or choose another folder.",
    );
  }
  if (links === "none") {
    return note(
      `${what}; its file system does not support links`,
      "Models can be downloaded, but versions of a model cannot share files and take more space. Prefer a folder on another file system.",
    );
  }
  if (free !== undefined && free < SCARCE_BYTES) {
    return note(
      `${what}: enough for small models only`,
      "Free space with daybreak rm <model>, or choose another folder.",
    );
  }
  return ok(what);
}

type Links = "symbolic" | "hard" | "none";

/** Tries links in a temporary folder, as downloads make them. Throws if the folder is not writable. */
function tryLinks(folder: string, { symlink, link }: FileSystemCalls): Links {
  const trial = mkdtempSync(path.join(folder, ".doctor-"));
  try {
    const file = path.join(trial, "file");
    writeFileSync(file, "content");
    if (succeeds(() => symlink("file", path.join(trial, "symbolic")))) return "symbolic";
    return succeeds(() => link(file, path.join(trial, "name"))) ? "hard" : "none";
  } finally {
    rmSync(trial, { recursive: true, force: true });
  }
}

function succeeds(attempt: () => void): boolean {
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

/** The check reads the header of every model. */
const MODELS_DEADLINE_MS = 20_000;

/**
 * Checks headers and lengths of the models on disk. Damage behind the header is only found when a model is loaded.
 */
export function modelsCheck(cacheDir: string): Check {
  const inspect = createGgufInspector();
  return createCheck(
    "Models",
    async (signal) => {
      const unreadable = await findReadProblem(cacheDir);
      if (unreadable !== undefined)
        return note(`not known: ${unreadable}`, "See the check of the cache folder.");
      const store = new DiskHubStore({ cacheDir, hubUrl: "http://localhost" });
      const models = await store.list();
      const findings: Result[] = [];
      for (const { spec, files } of models) {
        signal.throwIfAborted();
        const damage = await findDamage(files, inspect);
        if (damage !== undefined)
          findings.push(problem(`${spec}: ${damage}`, `daybreak rm ${spec}, then daybreak pull ${spec}`));
      }
      findings.push(...(await incompleteFindings(cacheDir)), ...(await userFileFindings(cacheDir)));
      if (findings.length > 0) return findings;
      const count =
        models.length === 0 ? "none downloaded" : `${models.length} downloaded, none damaged or incomplete`;
      return ok(`${count}, besides those that ship`);
    },
    MODELS_DEADLINE_MS,
  );
}

/** Reason why the folder cannot be listed; undefined if it can, or does not exist yet. */
async function findReadProblem(folder: string): Promise<string | undefined> {
  try {
    await readdir(folder);
    return undefined;
  } catch (error) {
    if (!isSystemError(error)) throw error;
    return error.code === "ENOENT" ? undefined : `the cache folder cannot be read (${codeOrReason(error)})`;
  }
}

async function findDamage(files: readonly string[], inspect: InspectGguf): Promise<string | undefined> {
  try {
    await inspect(files);
    return undefined;
  } catch (error) {
    if (error instanceof ServiceError) return error.message;
    throw error;
  }
}

/** Reports interrupted downloads, and links without content. */
async function incompleteFindings(cacheDir: string): Promise<readonly Result[]> {
  const findings: Result[] = [];
  for (const repo of (await listNames(cacheDir)).map(repoOfFolder)) {
    if (repo === undefined) continue;
    const cache = new RepoCache(cacheDir, repo);
    findings.push(...(await interruptedDownloads(cache)), ...(await missingFiles(cache)));
  }
  return findings;
}

async function interruptedDownloads(cache: RepoCache): Promise<readonly Result[]> {
  let bytes = 0;
  for (const name of await listNames(cache.blobs)) {
    const hex = RepoCache.unfinishedBlob(name);
    // A locked download is still running.
    if (hex === undefined || (await isClaimed(cache.lock(hex)))) continue;
    bytes += (await lstat(path.join(cache.blobs, name))).size;
  }
  if (bytes === 0) return [];
  const what = `${cache.repo}: a download was interrupted after ${formatBytes(bytes)}`;
  return [note(what, `daybreak pull hf:${cache.repo} resumes it; it is removed after a month.`)];
}

async function missingFiles(cache: RepoCache): Promise<readonly Result[]> {
  const entries = await readdir(cache.snapshots, { recursive: true, withFileTypes: true }).catch(() => []);
  const findings: Result[] = [];
  for (const { parentPath, name } of entries.filter((entry) => entry.isSymbolicLink())) {
    if (/\.gguf$/i.test(name) && (await isMissing(path.join(parentPath, name)))) {
      findings.push(
        problem(`${cache.repo}: the content of ${name} is gone`, `daybreak pull hf:${cache.repo}:${name}`),
      );
    }
  }
  return findings;
}

/** Reports registered files of the user that no longer exist. */
async function userFileFindings(cacheDir: string): Promise<readonly Result[]> {
  const findings: Result[] = [];
  for (const { alias, path: file } of await rememberedFiles(path.join(cacheDir, "models.json"))) {
    if (await isMissing(file))
      findings.push(note(`${alias}: its file ${file} is gone`, `daybreak rm ${alias} forgets it.`));
  }
  return findings;
}

async function rememberedFiles(stateFile: string) {
  try {
    return savedStateSchema.parse(JSON.parse(await readFile(stateFile, "utf8"))).files;
  } catch {
    return []; // no file yet; the daemon reports a damaged one
  }
}

async function isMissing(file: string): Promise<boolean> {
  try {
    await stat(file);
    return false;
  } catch (error) {
    return isSystemError(error) && error.code === "ENOENT";
  }
}
