import type { BigIntStats } from "node:fs";
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { rethrowExhaustion } from "../../../errors/service-error.ts";
import { listEntries } from "../../../files/file-operations.ts";
import { chooseModelFiles, chooseProjector, groupModels, type HubSpec } from "../../names/hub-spec.ts";
import { isGguf } from "../../names/model-file-names.ts";
import { isRepoFile } from "../../names/name-rules.ts";
import { type CachedModel, isCommit } from "../hub-types.ts";
import { RepoCache, repoOfFolder } from "./repo-cache.ts";

export interface SnapshotFile {
  /** Path inside the repository, separated by `/`. */
  readonly path: string;
  readonly absolute: string;
  readonly size: number;
  /** See {@link identityOf}. */
  readonly identity: string;
}

export interface Snapshot {
  readonly commit: string;
  /** Branches and tags that pointed to this commit at the last pull. */
  readonly refs: readonly string[];
  readonly files: readonly SnapshotFile[];
  /** Time of its newest entry, in Unix milliseconds. */
  readonly modifiedAt: number;
}

/** Selects files before they are read: other tools cache complete repositories with many files. */
type FileFilter = (path: string) => boolean;

/**
 * Reads the files of every snapshot of a repository. Files that lead out of the cache, do not exist or are
 * not regular are skipped.
 * @throws the system's error if it is out of file descriptors, so that the files are not taken for missing
 */
export async function readSnapshots(cache: RepoCache, filter: FileFilter): Promise<Snapshot[]> {
  if ((await cache.realPath(cache.root)) === undefined) return [];
  const refs = await readRefs(cache);
  const commits = (await listEntries(cache.snapshots)).filter((entry) => isCommit(entry.name));
  const snapshots = await Promise.all(
    commits.map(async ({ name: commit }) => {
      const folder = path.join(cache.snapshots, commit);
      const files = await readFiles(cache, folder, filter);
      const info = await bigStat(folder);
      // Another process may have removed the snapshot since it was listed.
      if (info === undefined) return [];
      const names = refs.filter((ref) => ref.commit === commit).map((ref) => ref.name);
      return [{ commit, refs: names, files, modifiedAt: Number(info.mtimeMs) }];
    }),
  );
  return snapshots.flat();
}

async function readFiles(cache: RepoCache, folder: string, filter: FileFilter): Promise<SnapshotFile[]> {
  const paths = (await listTree(folder)).filter((file) => filter(file) && isRepoFile(file));
  const files = paths.map(async (file): Promise<SnapshotFile[]> => {
    const absolute = path.join(folder, ...file.split("/"));
    const real = await cache.realPath(absolute);
    const info = real !== undefined && (await bigStat(real));
    return info && info.isFile()
      ? [{ path: file, absolute, size: Number(info.size), identity: identityOf(info) }]
      : [];
  });
  return (await Promise.all(files)).flat();
}

/** Returns the status of a file; undefined if there is none. Inode numbers on Windows need 64 bits. */
async function bigStat(file: string): Promise<BigIntStats | undefined> {
  return (await stat(file, { bigint: true }).catch(rethrowExhaustion)) ?? undefined;
}

/** Returns a text that is the same for links to the same content. */
export function identityOf({ dev, ino }: BigIntStats): string {
  return `${dev}:${ino}`;
}

async function readRefs(cache: RepoCache): Promise<{ name: string; commit: string }[]> {
  const refs = (await listTree(cache.refs)).map(async (name) => {
    const text = await readFile(path.join(cache.refs, ...name.split("/")), "utf8").catch(rethrowExhaustion);
    return { name, commit: text?.trim() ?? "" };
  });
  return (await Promise.all(refs)).filter(({ commit }) => isCommit(commit));
}

/** Returns the relative paths of all files and links below a folder; links to folders are not followed. */
async function listTree(folder: string): Promise<string[]> {
  const nested = (await listEntries(folder)).map(async (entry) => {
    if (!entry.isDirectory()) return [entry.name];
    const inner = await listTree(path.join(folder, entry.name));
    return inner.map((name) => `${entry.name}/${name}`);
  });
  return (await Promise.all(nested)).flat();
}

/** A complete model in a snapshot, with the revision in its name. */
interface CacheEntry {
  readonly snapshot: Snapshot;
  /** Revision in its spec; undefined for main. */
  readonly label: string | undefined;
  /** All shards in order. */
  readonly files: readonly SnapshotFile[];
}

/**
 * Labels the models of a repository's snapshots. A snapshot with a branch or tag is labeled with it. Other snapshots
 * are earlier versions of main: a model that only exists there counts as main's, and one whose content is already
 * listed is skipped.
 */
function nameEntries(snapshots: readonly Snapshot[]): CacheEntry[] {
  const entries: CacheEntry[] = [];
  const contents = new Set<string>();
  const mainFiles = new Set<string>();
  for (const snapshot of snapshots.toSorted(byRank)) {
    for (const files of modelsOf(snapshot)) {
      const content = contentKey(files);
      if (snapshot.refs.length === 0 && contents.has(content)) continue;
      contents.add(content);
      const first = files[0]!.path;
      const label = labelOf(snapshot, !mainFiles.has(first));
      if (label === undefined) mainFiles.add(first);
      entries.push({ snapshot, label, files });
    }
  }
  return entries;
}

/** Returns a key that is the same for models with the same names and content. */
export function contentKey(files: readonly SnapshotFile[]): string {
  return files.map((file) => `${file.path}\n${file.identity}`).join("\n");
}

export function modelsOf(snapshot: Snapshot): SnapshotFile[][] {
  const byPath = new Map(snapshot.files.map((file) => [file.path, file]));
  return groupModels([...byPath.keys()]).map((paths) => paths.map((file) => byPath.get(file)!));
}

export function toCachedModel(repo: string, { snapshot, label, files }: CacheEntry): CachedModel {
  const file = files[0]!.path;
  const paths = snapshot.files.map((entry) => entry.path);
  const projectorPath = chooseProjector(paths, file);
  const projector = snapshot.files.find((entry) => entry.path === projectorPath);
  return {
    spec: `hf:${repo}:${file}${label === undefined ? "" : `@${label}`}`,
    repo,
    revision: snapshot.commit,
    file,
    files: files.map((entry) => entry.absolute),
    projector: projector?.absolute,
    sizeBytes: [...files, ...(projector === undefined ? [] : [projector])].reduce(
      (sum, { size }) => sum + size,
      0,
    ),
  };
}

/** Sorts main first, then other branches and tags, then earlier versions of main; the newest first. */
function byRank(a: Snapshot, b: Snapshot): number {
  return rank(a) - rank(b) || b.modifiedAt - a.modifiedAt || (a.commit < b.commit ? -1 : 1);
}

function rank(snapshot: Snapshot): number {
  if (snapshot.refs.includes(MAIN)) return 0;
  return snapshot.refs.length > 0 ? 1 : 2;
}

function labelOf(snapshot: Snapshot, isMainFree: boolean): string | undefined {
  if (snapshot.refs.includes(MAIN)) return undefined;
  const name = snapshot.refs.toSorted()[0];
  if (name !== undefined) return name;
  return isMainFree ? undefined : snapshot.commit;
}

/** Default revision of a hub spec. */
export const MAIN = "main";

/** Finds the snapshot of a branch, tag or commit. */
export function snapshotAt(snapshots: readonly Snapshot[], revision: string): Snapshot | undefined {
  return snapshots.find(
    ({ commit, refs }) => commit === revision || (!isCommit(revision) && refs.includes(revision)),
  );
}

/** Returns the cached models of a revision; an undefined revision means main. */
export async function entriesAt(cache: RepoCache, revision: string | undefined): Promise<CacheEntry[]> {
  const snapshots = await readSnapshots(cache, isGguf);
  if (revision === undefined || revision === MAIN)
    return nameEntries(snapshots).filter((entry) => entry.label === undefined);
  const snapshot = snapshotAt(snapshots, revision);
  return snapshot === undefined
    ? []
    : modelsOf(snapshot).map((files) => ({ snapshot, label: revision, files }));
}

/** Chooses the cached model that a spec means, as on the hub. */
export function chooseEntry(entries: readonly CacheEntry[], spec: HubSpec): CacheEntry | undefined {
  const paths = entries.flatMap((entry) => entry.files.map((file) => file.path));
  const first = chooseModelFiles(paths, spec)?.[0];
  return entries.find((entry) => entry.files[0]?.path === first);
}

/** Lists the models in a cache folder of the hub's standard layout; none while it does not exist. */
export async function listCachedModels(cacheDir: string): Promise<readonly CachedModel[]> {
  const models = (await listRepoCaches(cacheDir)).map(async (cache) => {
    const entries = nameEntries(await readSnapshots(cache, isGguf));
    return entries.map((entry) => toCachedModel(cache.repo, entry));
  });
  return (await Promise.all(models)).flat();
}

/** Lists the repositories in a cache folder. */
export async function listRepoCaches(cacheDir: string): Promise<RepoCache[]> {
  const folder = await realpath(cacheDir).catch(() => undefined);
  if (folder === undefined) return [];
  const repos = (await readdir(folder)).map(repoOfFolder).filter((repo) => repo !== undefined);
  return repos.toSorted().map((repo) => new RepoCache(folder, repo));
}
