import { realpath } from "node:fs/promises";
import path from "node:path";
import { throwExhaustion } from "../../../errors/exhausted-resource.ts";

/** Between owner and repository in a folder's name: the hub allows it in neither. */
const SEPARATOR = "--";

/** One part of a repository's name as the hub allows it. */
const NAME_PART = /^[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?$/;

/**
 * Where one repository lies in the hub's standard cache layout: `models--owner--repo` with `blobs` (content, named
 * by digest), `snapshots/<commit>` (the repository's tree, of links into blobs) and `refs` (what commit a branch
 * or tag was). https://huggingface.co/docs/huggingface_hub/guides/manage-cache
 */
export class RepoCache {
  readonly repo: string;
  readonly root: string;
  readonly blobs: string;
  readonly snapshots: string;
  readonly refs: string;
  /** Beside the repositories, as the hub's other tools have it. */
  readonly locks: string;

  constructor(cacheDir: string, repo: string) {
    const folder = folderOf(repo);
    this.repo = repo;
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

  /** The blob whose lock a file of {@link locks} is; undefined for files of others. */
  static lockedBlob(name: string): string | undefined {
    return /^([0-9a-f]+)\.pull$/.exec(name)?.[1];
  }

  /** The blob of which a file among {@link blobs} is the unfinished download; undefined for other files. */
  static unfinishedBlob(name: string): string | undefined {
    return /^([0-9a-f]+)\.incomplete$/.exec(name)?.[1];
  }

  /** @param file - a checked path inside the repository */
  snapshotFile(commit: string, file: string): string {
    return path.join(this.snapshots, commit, ...file.split("/"));
  }
}

function folderOf(repo: string): string {
  return ["models", ...repo.split("/")].join(SEPARATOR);
}

/** True for owner/repository as the hub allows it, and nothing that means something to a file system. */
export function isRepoName(repo: string): boolean {
  const parts = repo.split("/");
  return (
    parts.length === 2 &&
    parts.every((part) => NAME_PART.test(part) && !part.includes("..") && !part.includes(SEPARATOR))
  );
}

/** The repository of a folder in the cache; undefined for any other folder. */
export function repoOfFolder(folder: string): string | undefined {
  const [kind, ...parts] = folder.split(SEPARATOR);
  const repo = parts.join("/");
  return kind === "models" && isRepoName(repo) ? repo : undefined;
}

/**
 * The real path of something in the cache; undefined when it does not exist or a link leads out of the cache.
 * @param realCacheDir - the cache folder with its own links resolved
 */
export async function realPathInside(realCacheDir: string, target: string): Promise<string | undefined> {
  try {
    const real = await realpath(target);
    const relative = path.relative(realCacheDir, real);
    const outside = relative === ".." || relative.startsWith(`..${path.sep}`) || path.isAbsolute(relative);
    return outside ? undefined : real;
  } catch (error) {
    throwExhaustion(error);
    return undefined;
  }
}
