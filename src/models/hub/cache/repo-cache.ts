import { link, mkdir, realpath, stat, symlink } from "node:fs/promises";
import path from "node:path";
import { ServiceError, throwExhaustion } from "../../../errors/service-error.ts";
import { removeFile, replaceFile } from "../../../files/file-operations.ts";
import { isHubPart } from "../../names/name-rules.ts";
import { isInside } from "../../registry/model-file.ts";

/** Separates owner and repository in a folder's name; the hub does not allow it in either. */
const SEPARATOR = "--";

/**
 * Folder of one repository in the hub's standard cache layout: `models--owner--repo` with `blobs` (content, named by
 * digest), `snapshots/<commit>` (the repository's tree, links into blobs) and `refs` (the commits of branches and
 * tags). https://huggingface.co/docs/huggingface_hub/guides/manage-cache
 */
export class RepoCache {
  readonly repo: string;
  readonly #cacheDir: string;
  readonly root: string;
  readonly blobs: string;
  readonly snapshots: string;
  readonly refs: string;
  /** Next to the repositories, as in the hub's other tools. */
  readonly locks: string;

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

  /** The path that other tools of the hub give an unfinished download too; the digest in it is the file's ETag. */
  part(hex: string): string {
    return path.join(this.blobs, `${hex}.incomplete`);
  }

  /** Held by the process that downloads the blob. */
  lock(hex: string): string {
    return path.join(this.locks, `${hex}.pull`);
  }

  /** What is made under another name before it takes its place; one at a time, under the folder's lock. */
  get next(): string {
    return path.join(this.root, ".next");
  }

  /** True for a file of {@link locks} that is one of ours. */
  static isLock(name: string): boolean {
    return /^[0-9a-f]+\.pull$/.test(name);
  }

  /** The blob of which a file among {@link blobs} is the unfinished download; undefined for other files. */
  static unfinishedBlob(name: string): string | undefined {
    return /^([0-9a-f]+)\.incomplete$/.exec(name)?.[1];
  }

  /** @param file - a checked path inside the repository */
  snapshotFile(commit: string, file: string): string {
    return path.join(this.snapshots, commit, ...file.split("/"));
  }

  /** The real path of an entry in the cache; undefined if it does not exist or a link leads out of the cache. */
  async real(target: string): Promise<string | undefined> {
    return await realPathInside(this.#cacheDir, target);
  }

  /** Whether the file exists with all its bytes. */
  async isWhole(target: string, size: number): Promise<boolean> {
    const real = await this.real(target);
    if (real === undefined) return false;
    const info = await stat(real);
    return info.isFile() && info.size === size;
  }

  /** Creates a folder level by level, and never behind a link that leads out of the cache. */
  async makeFolder(folder: string): Promise<void> {
    let current = this.#cacheDir;
    for (const name of path.relative(current, folder).split(path.sep)) {
      current = path.join(current, name);
      await mkdir(current, { recursive: true });
      if ((await this.real(current)) === undefined)
        throw new ServiceError(
          "path_not_allowed",
          `${current} is a link that leads out of the cache folder.`,
        );
    }
  }
}

/** Whether the text is an owner/repository that the hub allows, without anything special to a file system. */
export function isRepoName(repo: string): boolean {
  const parts = repo.split("/");
  return parts.length === 2 && parts.every(isHubPart);
}

/** The repository of a cache folder; undefined for other folders. */
export function repoOfFolder(folder: string): string | undefined {
  const [kind, ...parts] = folder.split(SEPARATOR);
  const repo = parts.join("/");
  return kind === "models" && isRepoName(repo) ? repo : undefined;
}

/** The real path of an entry in a folder; undefined if it does not exist or a link leads out of the folder. */
export async function realPathInside(realFolder: string, target: string): Promise<string | undefined> {
  try {
    const real = await realpath(target);
    return isInside(real, realFolder) ? real : undefined;
  } catch (error) {
    throwExhaustion(error);
    return undefined;
  }
}

/**
 * Makes a blob visible under its name in a snapshot, atomically: by a relative symlink, so that the cache can be moved;
 * without symlinks (Windows without developer mode) by a hard link; without hard links (exFAT) by moving the blob.
 * @param temporary - a name on the same disk that nobody else uses now
 */
export async function linkInSnapshot(
  blobPath: string,
  target: string,
  temporary: string,
  makeLink: typeof symlink = symlink,
  makeSecondName: typeof link = link,
): Promise<void> {
  const folder = path.dirname(target);
  await mkdir(folder, { recursive: true });
  await removeFile(temporary);
  try {
    try {
      await makeLink(path.relative(folder, blobPath), temporary);
    } catch {
      await makeSecondName(blobPath, temporary);
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
