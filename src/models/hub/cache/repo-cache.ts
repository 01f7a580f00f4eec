import { link, mkdir, realpath, stat, symlink } from "node:fs/promises";
import path from "node:path";
import { ServiceError, rethrowExhaustion } from "../../../errors/service-error.ts";
import { removeFile, replaceFile } from "../../../files/file-operations.ts";
import { isRepoName } from "../../names/name-rules.ts";
import { isInside } from "../../registry/model-record.ts";

/** Separates owner and repository in a folder's name; the hub does not allow it in either. */
const SEPARATOR = "--";

/**
 * Folder of one repository in the hub's standard cache layout: `models--owner--repo` with `blobs` (content, named by
 * digest), `snapshots/<commit>` (the repository's tree, with links to blobs) and `refs` (commits of branches and tags).
 * https://huggingface.co/docs/huggingface_hub/guides/manage-cache
 */
export class RepoCache {
  readonly repo: string;
  readonly #cacheDir: string;
  readonly root: string;
  readonly blobs: string;
  readonly snapshots: string;
  readonly refs: string;
  /** Folder of lock files, next to the repositories as in the hub's other tools. */
  readonly locks: string;

  /** Returns the cache of a repository; undefined while the cache folder does not exist. */
  static async open(cacheDir: string, repo: string): Promise<RepoCache | undefined> {
    const folder = await realpath(cacheDir).catch(() => undefined);
    return folder === undefined ? undefined : new RepoCache(folder, repo);
  }

  /** @param cacheDir the cache folder with its own links resolved */
  constructor(cacheDir: string, repo: string) {
    const folder = ["models", ...repo.split("/")].join(SEPARATOR);
    this.repo = repo;
    this.#cacheDir = cacheDir;
    this.root = path.join(cacheDir, folder);
    this.blobs = path.join(this.root, "blobs");
    this.snapshots = path.join(this.root, "snapshots");
    this.refs = path.join(this.root, "refs");
    this.locks = path.join(cacheDir, ".locks", folder);
  }

  blob(hex: string): string {
    return path.join(this.blobs, hex);
  }

  /** Path of an unfinished download, as in the hub's other tools, which name it after the file's ETag. */
  part(hex: string): string {
    return path.join(this.blobs, `${hex}.incomplete`);
  }

  /** Path of the lock file of the process that downloads the blob. */
  lock(hex: string): string {
    return path.join(this.locks, `${hex}.pull`);
  }

  /** Path of a new file or link before it is renamed; used by one process at a time, under the folder's lock. */
  get temporaryPath(): string {
    return path.join(this.root, ".next");
  }

  /** True for a file in {@link locks} that Daybreak has created. */
  static isLock(name: string): boolean {
    return /^[0-9a-f]+\.pull$/.test(name);
  }

  /** Returns the digest in the name of an unfinished download in {@link blobs}; undefined for other files. */
  static unfinishedBlob(name: string): string | undefined {
    return /^([0-9a-f]+)\.incomplete$/.exec(name)?.[1];
  }

  /** @param file - checked path inside the repository */
  snapshotFile(commit: string, file: string): string {
    return path.join(this.snapshots, commit, ...file.split("/"));
  }

  /**
   * Returns the real path of an entry in the cache; undefined if it does not exist or a link leads out of the cache.
   */
  async realPath(target: string): Promise<string | undefined> {
    return await realPathInside(this.#cacheDir, target);
  }

  async isComplete(target: string, size: number): Promise<boolean> {
    const real = await this.realPath(target);
    if (real === undefined) return false;
    const info = await stat(real);
    return info.isFile() && info.size === size;
  }

  /** Creates a folder level by level, and refuses links that lead out of the cache. */
  async makeFolder(folder: string): Promise<void> {
    let current = this.#cacheDir;
    for (const name of path.relative(current, folder).split(path.sep)) {
      current = path.join(current, name);
      await mkdir(current, { recursive: true });
      if ((await this.realPath(current)) === undefined)
        throw new ServiceError(
          "path_not_allowed",
          `${current} is a link that leads out of the cache folder.`,
        );
    }
  }
}

/** Returns the repository of a cache folder; undefined for other folders. */
export function repoOfFolder(folder: string): string | undefined {
  const [kind, ...parts] = folder.split(SEPARATOR);
  const repo = parts.join("/");
  return kind === "models" && isRepoName(repo) ? repo : undefined;
}

/** Returns the real path of an entry in a folder; undefined if it does not exist or a link leads out of the folder. */
export async function realPathInside(realFolder: string, target: string): Promise<string | undefined> {
  const real = await realpath(target).catch(rethrowExhaustion);
  return real !== undefined && isInside(real, realFolder) ? real : undefined;
}

/**
 * Adds a blob to a snapshot, atomically: by a relative symlink, so that the cache can be moved; without symlinks
 * (Windows without developer mode) by a hard link; without hard links (exFAT) by moving the blob.
 * @param temporary - unused path on the same disk
 */
export async function linkInSnapshot(
  blobPath: string,
  target: string,
  temporary: string,
  makeSymlink: typeof symlink = symlink,
  makeHardLink: typeof link = link,
): Promise<void> {
  const folder = path.dirname(target);
  await mkdir(folder, { recursive: true });
  await removeFile(temporary);
  try {
    try {
      await makeSymlink(path.relative(folder, blobPath), temporary);
    } catch {
      await makeHardLink(blobPath, temporary);
    }
  } catch {
    await replaceFile(blobPath, target);
    return;
  }
  try {
    // Renaming a hard link onto another link to the same file does nothing and leaves both.
    await replaceFile(temporary, target);
  } finally {
    await removeFile(temporary);
  }
}
