import { z } from "zod";
import { ServiceError } from "../../../errors/service-error.ts";
import type { HubRetry } from "../../model.ts";
import type { HubFetch } from "./hub-fetch.ts";
import { HubHttpFailure, HubNetworkFailure } from "./hub-failure.ts";
import { isCommit, isSha256, type RepoFile, type RepoListing } from "../repo-file.ts";
import { withRetries, type Sleep } from "./retry.ts";
import { isSafeRepoPath } from "../cache/safe-repo-path.ts";

/** The largest model repositories list a few hundred files; a listing without end must not fill the memory. */
const MAX_LISTED_FILES = 20_000;

/** Longest wait for one listing; the hub answers in well under a second. */
const LISTING_TIMEOUT_MS = 60_000;

/** Entry of GET /api/models/{repo}/tree/{revision}, the parts that are used. */
const treeEntry = z.object({
  type: z.string(),
  path: z.string(),
  size: z.int().nonnegative(),
  oid: z.string().optional(),
  lfs: z.object({ oid: z.string(), size: z.int().nonnegative() }).optional(),
  xetHash: z.string().optional(),
});

export interface ListRepoOptions {
  readonly hub: HubFetch;
  readonly hubUrl: string;
  /** owner/repository */
  readonly repo: string;
  /** Branch, tag or commit. */
  readonly revision: string;
  readonly sleep: Sleep;
  readonly onRetry: (retry: HubRetry) => void;
  readonly signal: AbortSignal;
}

/**
 * Asks the hub which commit a revision is and what files it holds. Files whose name could not safely become a
 * path are left out: such a file is never a candidate for a download.
 * @throws HubHttpFailure, HubNetworkFailure
 */
export function listRepo(options: ListRepoOptions): Promise<RepoListing> {
  return withRetries(() => listOnce(options), options, options.signal);
}

async function listOnce({ hub, hubUrl, repo, revision, signal }: ListRepoOptions): Promise<RepoListing> {
  // Loaded with the first question to the hub: many daemons never ask one.
  const { listFiles, modelInfo } = await import("@huggingface/hub");
  const fetch = hub.asFetch(AbortSignal.any([signal, AbortSignal.timeout(LISTING_TIMEOUT_MS)]));
  try {
    const { sha } = await modelInfo({ name: repo, revision, additionalFields: ["sha"], hubUrl, fetch });
    if (!isCommit(sha)) throw new HubNetworkFailure("the hub names a commit that is none");
    const files: RepoFile[] = [];
    let seen = 0;
    for await (const entry of listFiles({ repo, revision: sha, recursive: true, hubUrl, fetch })) {
      if (++seen > MAX_LISTED_FILES)
        throw new HubNetworkFailure(`the repository lists more than ${MAX_LISTED_FILES} files`);
      const file = parseEntry(entry);
      if (file !== undefined) files.push(file);
    }
    return { repo, commit: sha, files };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof HubHttpFailure || error instanceof HubNetworkFailure) throw error;
    if (error instanceof ServiceError) throw error;
    // What is left is a body that broke off or is not what the hub's API sends.
    throw new HubNetworkFailure("the hub's listing cannot be read", { cause: error });
  }
}

function parseEntry(entry: unknown): RepoFile | undefined {
  const { type, path, size, oid, lfs, xetHash } = treeEntry.parse(entry);
  if (type !== "file" || !isSafeRepoPath(path)) return undefined;
  if (lfs !== undefined) {
    if (!isSha256(lfs.oid)) return undefined;
    const digest = { algorithm: "sha256", hex: lfs.oid } as const;
    return { path, size: lfs.size, digest, xet: xetHash !== undefined };
  }
  if (oid === undefined || !isCommit(oid)) return undefined;
  return { path, size, digest: { algorithm: "git-sha1", hex: oid }, xet: false };
}
