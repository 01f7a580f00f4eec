import { z } from "zod";
import type { HubRetry } from "../../model.ts";
import type { HubFetch } from "./hub-fetch.ts";
import { HubAnswerFailure, HubNetworkFailure } from "./hub-failure.ts";
import { type JsonAnswer, readJson } from "./read-json.ts";
import { isCommit, isSha256, type RepoFile, type RepoListing } from "../repo-file.ts";
import { withRetries, type Sleep } from "./retry.ts";
import { isRepoFile } from "../../names/name-rules.ts";

/** The largest model repositories list a few hundred files; a listing without end must not fill the memory. */
const MAX_LISTED_FILES = 20_000;

/** The hub puts a thousand files on a page; a hub may put fewer, but not so few that it never ends. */
const MAX_PAGES = 200;

/** Longest wait for one listing; the hub answers in well under a second. */
const LISTING_TIMEOUT_MS = 60_000;

/** Answer of GET /api/models/{repo}/revision/{revision}, the part that is used. */
const revisionAnswer = z.object({ sha: z.string() });

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
 * @throws HubHttpFailure, HubNetworkFailure, HubAnswerFailure
 */
export function listRepo(options: ListRepoOptions): Promise<RepoListing> {
  return withRetries(() => listOnce(options), options, options.signal);
}

async function listOnce({ hub, hubUrl, repo, revision, signal }: ListRepoOptions): Promise<RepoListing> {
  const late = AbortSignal.timeout(LISTING_TIMEOUT_MS);
  const inTime = AbortSignal.any([signal, late]);
  try {
    const api = `${hubUrl}/api/models/${repo}`;
    const asked = await readJson(hub, `${api}/revision/${encodeURIComponent(revision)}?expand=sha`, inTime);
    const commit = revisionAnswer.safeParse(asked.body).data?.sha;
    if (commit === undefined || !isCommit(commit))
      throw new HubAnswerFailure(`it names no commit for revision "${revision}"`);
    return { repo, commit, files: await listCommit(hub, `${api}/tree/${commit}?recursive=true`, inTime) };
  } catch (error) {
    signal.throwIfAborted();
    if (!late.aborted) throw error;
    throw new HubNetworkFailure(`its listing takes longer than ${LISTING_TIMEOUT_MS / 1000} s`, {
      cause: error,
      isFinal: true,
    });
  }
}

async function listCommit(hub: HubFetch, address: string, signal: AbortSignal): Promise<RepoFile[]> {
  const files: RepoFile[] = [];
  let listed = 0;
  let next: string | undefined = address;
  for (let page = 0; next !== undefined; page++) {
    if (page === MAX_PAGES) throw new HubAnswerFailure(`a listing has more than ${MAX_PAGES} pages`);
    const answer: JsonAnswer = await readJson(hub, next, signal);
    if (!Array.isArray(answer.body)) throw new HubAnswerFailure("a listing is not a list");
    listed += answer.body.length;
    if (listed > MAX_LISTED_FILES)
      throw new HubAnswerFailure(`a repository has more than ${MAX_LISTED_FILES} files`);
    files.push(...answer.body.flatMap(parseEntry));
    next = answer.next && atHub(answer.next, address);
  }
  return files;
}

/** Of the hub itself, whatever host its links name: mirrors pass on those of the original. */
function atHub(link: string, address: string): string {
  const { pathname, search } = new URL(link);
  return new URL(pathname + search, address).href;
}

/** None for what is no file, or no file that could be downloaded. */
function parseEntry(entry: unknown): RepoFile[] {
  const parsed = treeEntry.safeParse(entry);
  if (!parsed.success)
    throw new HubAnswerFailure("a listing has an entry that is not a file", { cause: parsed.error });
  const { type, path, size, oid, lfs, xetHash } = parsed.data;
  if (type !== "file" || !isRepoFile(path)) return [];
  if (lfs !== undefined) {
    if (!isSha256(lfs.oid)) return [];
    const digest = { algorithm: "sha256", hex: lfs.oid } as const;
    return [{ path, size: lfs.size, digest, xet: xetHash !== undefined }];
  }
  if (oid === undefined || !isCommit(oid)) return [];
  return [{ path, size, digest: { algorithm: "git-sha1", hex: oid }, xet: false }];
}
