import { readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { throwExhaustion } from "../../../errors/exhausted-resource.ts";
import { realPathInside, type RepoCache } from "./repo-cache.ts";
import { isCommit } from "../repo-file.ts";
import { isRepoFile } from "../../names/name-rules.ts";

/** A whole file in a snapshot. */
export interface SnapshotFile {
  /** Path inside the repository, with `/` between its parts. */
  readonly path: string;
  readonly absolute: string;
  readonly size: number;
  /** The same for two names of one content on disk. */
  readonly identity: string;
}

export interface Snapshot {
  readonly commit: string;
  /** Branches and tags that were this commit when they were last looked up. */
  readonly refs: readonly string[];
  readonly files: readonly SnapshotFile[];
  /** Unix milliseconds of its newest entry. */
  readonly modifiedAt: number;
}

/** Other tools keep whole repositories in the cache; looking at every file of them takes its time. */
export type FileFilter = (path: string) => boolean;

export const isGguf: FileFilter = (file) => /\.gguf$/i.test(file);

/**
 * Reads the files of every snapshot of a repository. What leads out of the cache, does not exist or is no regular
 * file is passed over.
 * @throws the system's error when it has no descriptor left to look with, which says nothing about the files
 * @param realCacheDir - the cache folder with its own links resolved
 * @param wanted - which files to look at, by their paths inside the repository
 */
export async function readSnapshots(
  realCacheDir: string,
  cache: RepoCache,
  wanted: FileFilter,
): Promise<Snapshot[]> {
  if ((await realPathInside(realCacheDir, cache.root)) === undefined) return [];
  const refs = await readRefs(cache);
  const commits = (await listFolder(cache.snapshots)).filter((entry) => isCommit(entry.name));
  const snapshots = await Promise.all(
    commits.map(async ({ name: commit }) => {
      const folder = path.join(cache.snapshots, commit);
      const files = await readFiles(realCacheDir, folder, wanted);
      const info = await statBig(folder);
      // Another process may have removed it since it was listed.
      if (info === undefined) return [];
      const ownRefs = refs.filter((ref) => ref.commit === commit).map((ref) => ref.name);
      return [{ commit, refs: ownRefs, files, modifiedAt: Number(info.mtimeMs) }];
    }),
  );
  return snapshots.flat();
}

async function readFiles(realCacheDir: string, folder: string, wanted: FileFilter): Promise<SnapshotFile[]> {
  const paths = (await listTree(folder)).filter((file) => wanted(file) && isRepoFile(file));
  const files = await Promise.all(
    paths.map(async (file) => readFileEntry(realCacheDir, path.join(folder, ...file.split("/")), file)),
  );
  return files.filter((file) => file !== undefined);
}

async function readFileEntry(
  realCacheDir: string,
  absolute: string,
  repoPath: string,
): Promise<SnapshotFile | undefined> {
  const real = await realPathInside(realCacheDir, absolute);
  if (real === undefined) return undefined;
  const info = await statBig(real);
  if (info === undefined || !info.isFile()) return undefined;
  return { path: repoPath, absolute, size: Number(info.size), identity: `${info.dev}:${info.ino}` };
}

async function statBig(file: string) {
  try {
    // On Windows file numbers need all 64 bits.
    return await stat(file, { bigint: true });
  } catch (error) {
    throwExhaustion(error);
    return undefined;
  }
}

async function readRefs(cache: RepoCache): Promise<{ name: string; commit: string }[]> {
  const names = await listTree(cache.refs);
  const refs = await Promise.all(
    names.map(async (name) => ({ name, commit: await readRef(path.join(cache.refs, ...name.split("/"))) })),
  );
  return refs.flatMap(({ name, commit }) => (isCommit(commit) ? [{ name, commit }] : []));
}

async function readRef(file: string): Promise<string> {
  try {
    return (await readFile(file, "utf8")).trim();
  } catch (error) {
    throwExhaustion(error);
    return "";
  }
}

/** Paths of everything in a folder that is no folder, relative to it; folders that are links are not entered. */
async function listTree(folder: string): Promise<string[]> {
  const entries = await listFolder(folder);
  const nested = await Promise.all(
    entries.map(async (entry) => {
      if (!entry.isDirectory()) return [entry.name];
      const inner = await listTree(path.join(folder, entry.name));
      return inner.map((name) => `${entry.name}/${name}`);
    }),
  );
  return nested.flat();
}

async function listFolder(folder: string) {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    throwExhaustion(error);
    return [];
  }
}
