import { readdir, realpath } from "node:fs/promises";
import type { CachedModel } from "../hub-store.ts";
import { RepoCache, repoOfFolder } from "./repo-cache.ts";
import { isGguf, nameEntries, readSnapshots, toCachedModel } from "./snapshots.ts";

/** The models in a folder of the hub's standard layout; none while it does not exist. */
export async function listCachedModels(cacheDir: string): Promise<readonly CachedModel[]> {
  const models = (await listRepoCaches(cacheDir)).map(async (cache) => {
    const entries = nameEntries(await readSnapshots(cache, isGguf));
    return entries.map((entry) => toCachedModel(cache.repo, entry));
  });
  return (await Promise.all(models)).flat();
}

/** The repositories in such a folder. */
export async function listRepoCaches(cacheDir: string): Promise<RepoCache[]> {
  const folder = await realpath(cacheDir).catch(() => undefined);
  if (folder === undefined) return [];
  const repos = (await readdir(folder)).map(repoOfFolder).filter((repo) => repo !== undefined);
  return repos.toSorted().map((repo) => new RepoCache(folder, repo));
}
