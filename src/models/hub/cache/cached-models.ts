import { chooseProjector, groupModels } from "../../names/choose-file.ts";
import type { CachedModel } from "../hub-store.ts";
import type { Snapshot, SnapshotFile } from "./read-snapshots.ts";

/** A complete model of one snapshot, with the name by which it is found again. */
export interface CacheEntry {
  readonly snapshot: Snapshot;
  /** Revision to name it by; undefined: the repository's main one. */
  readonly label: string | undefined;
  /** All shards in order. */
  readonly files: readonly SnapshotFile[];
}

const MAIN = "main";

/**
 * Names the models of a repository's snapshots. A snapshot that a branch or tag points to is named by it. Others
 * are what main once was: a model that is only there still counts as main's, and one whose content is listed
 * already is no model of its own.
 */
export function nameEntries(snapshots: readonly Snapshot[]): CacheEntry[] {
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

/** Every complete model of a snapshot under the given name. */
export function entriesOf(snapshot: Snapshot, label: string | undefined): CacheEntry[] {
  return modelsOf(snapshot).map((files) => ({ snapshot, label, files }));
}

/** Two models with the same key are the same files on disk under the same names. */
export function contentKey(files: readonly SnapshotFile[]): string {
  return files.map((file) => `${file.path}\n${file.identity}`).join("\n");
}

export function modelsOf(snapshot: Snapshot): SnapshotFile[][] {
  const byPath = new Map(snapshot.files.map((file) => [file.path, file]));
  return groupModels([...byPath.keys()]).map((paths) => paths.map((path) => byPath.get(path)!));
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

/** main first, then what has a name, then what had one: newest first. */
function byRank(a: Snapshot, b: Snapshot): number {
  return rank(a) - rank(b) || b.modifiedAt - a.modifiedAt || (a.commit < b.commit ? -1 : 1);
}

function rank(snapshot: Snapshot): number {
  if (snapshot.refs.includes(MAIN)) return 0;
  return snapshot.refs.length > 0 ? 1 : 2;
}

function labelOf(snapshot: Snapshot, free: boolean): string | undefined {
  if (snapshot.refs.includes(MAIN)) return undefined;
  const name = snapshot.refs.toSorted()[0];
  if (name !== undefined) return name;
  return free ? undefined : snapshot.commit;
}
