import { ServiceError } from "../../../errors/service-error.ts";
import type { Ownership } from "../../../files/folder-lock.ts";
import { removeFile } from "../../../files/remove-file.ts";
import type { RepoCache } from "../cache/repo-cache.ts";
import type { RepoFile } from "../hub-store.ts";
import { partSize } from "./download-blob.ts";
import type { PullTools } from "./snapshot-pull.ts";

/** A pull that has just been paused still closes its file; a download that goes on keeps it for longer. */
const CLOSING_MS = 3000;
const LOOK_MS = 100;

/**
 * Removes the unfinished downloads of files.
 * @returns bytes removed
 * @throws ServiceError model_busy while one of them is being downloaded
 */
export async function discardParts(
  cache: RepoCache,
  files: readonly RepoFile[],
  { lock, sleep }: Pick<PullTools, "lock" | "sleep">,
  signal: AbortSignal,
): Promise<number> {
  let freed = 0;
  for (const file of files) {
    const size = await partSize(cache, file);
    if (size === 0) continue;
    await using ownership = await ownSoon(cache.lock(file.digest.hex), lock, sleep, signal);
    if (ownership === undefined)
      throw new ServiceError(
        "model_busy",
        `${file.path} of ${cache.repo} is being downloaded by another client; pause that download first.`,
      );
    await removeFile(cache.part(file.digest.hex));
    freed += size;
  }
  return freed;
}

async function ownSoon(
  file: string,
  lock: PullTools["lock"],
  sleep: PullTools["sleep"],
  signal: AbortSignal,
): Promise<Ownership | undefined> {
  for (let waited = 0; ; waited += LOOK_MS) {
    const ownership = await lock.own(file);
    if (ownership || waited >= CLOSING_MS) return ownership;
    await sleep(LOOK_MS, signal);
  }
}
