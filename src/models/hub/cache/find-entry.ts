import { chooseModelFiles } from "../../names/choose-file.ts";
import type { HubSpec } from "../../names/hub-spec.ts";
import { isCommit } from "../hub-store.ts";
import type { RepoCache } from "./repo-cache.ts";
import { type CacheEntry, entriesOf, isGguf, nameEntries, readSnapshots } from "./snapshots.ts";

/** The revision of a spec that names none. */
export const MAIN = "main";

/** The models of a revision known to the cache; undefined for main. */
export async function entriesAt(cache: RepoCache, revision: string | undefined): Promise<CacheEntry[]> {
  const snapshots = await readSnapshots(cache, isGguf);
  if (revision === undefined || revision === MAIN)
    return nameEntries(snapshots).filter((entry) => entry.label === undefined);
  const snapshot = snapshots.find(
    ({ commit, refs }) => commit === revision || (!isCommit(revision) && refs.includes(revision)),
  );
  return snapshot === undefined ? [] : entriesOf(snapshot, revision);
}

/** The cached model that a spec means, chosen as on the hub. */
export function chooseEntry(entries: readonly CacheEntry[], spec: HubSpec): CacheEntry | undefined {
  const paths = entries.flatMap((entry) => entry.files.map((file) => file.path));
  const first = chooseModelFiles(paths, spec)?.[0];
  return entries.find((entry) => entry.files[0]?.path === first);
}
