import { z } from "zod";
import { ServiceError } from "../../../errors/service-error.ts";
import { JsonReader } from "../../../json/json-reader.ts";
import { isRepoFile, isRepoName } from "../../names/name-rules.ts";
import { type HubRetry, isCommit, isSha256, type RepoFile, type RepoListing } from "../hub-types.ts";
import { HubAnswerFailure, HubNetworkFailure } from "./hub-error.ts";
import { httpFailure, type HubFetch, readStream } from "./hub-fetch.ts";
import { type Sleep, withRetries } from "./retry.ts";

/** Maximum bytes of an answer; a page of a thousand files has some 400 KB. */
const MAX_JSON_BYTES = 8 * 1024 * 1024;

/** Maximum files of a repository; the largest model repositories have a few hundred. */
const MAX_LISTED_FILES = 20_000;

/** Maximum pages of a listing. Hugging Face puts a thousand files on a page; other hubs may use smaller pages. */
const MAX_PAGES = 200;

/** Timeout for a listing; the hub answers in well under a second. */
const LISTING_TIMEOUT_MS = 60_000;

/** Answer of GET /api/models/{repo}/revision/{revision}, the field that is used. */
const revisionAnswer = z.object({ sha: z.string() });

/** Entry of GET /api/models/{repo}/tree/{revision}, the fields that are used. */
const treeEntry = z.object({
  type: z.string(),
  path: z.string(),
  size: z.int().nonnegative(),
  oid: z.string().optional(),
  lfs: z.object({ oid: z.string(), size: z.int().nonnegative() }).optional(),
  xetHash: z.string().optional(),
});

interface ListRepoOptions {
  readonly hub: HubFetch;
  readonly repo: string;
  readonly revision: string;
  readonly sleep: Sleep;
  readonly onRetry: (retry: HubRetry) => void;
  readonly signal: AbortSignal;
}

/**
 * Lists a revision's commit and files on the hub. Files with names that are unsafe as paths are left out, so they are
 * never downloaded.
 * @throws HubHttpFailure, HubNetworkFailure, HubAnswerFailure
 */
export function listRepo(options: ListRepoOptions): Promise<RepoListing> {
  return withRetries(() => listOnce(options), options, options.signal);
}

async function listOnce({ hub, repo, revision, signal }: ListRepoOptions): Promise<RepoListing> {
  const timeout = AbortSignal.timeout(LISTING_TIMEOUT_MS);
  const deadline = AbortSignal.any([signal, timeout]);
  try {
    const api = `${hub.url}/api/models/${repo}`;
    const answer = await readJson(
      hub,
      `${api}/revision/${encodeURIComponent(revision)}?expand=sha`,
      deadline,
    );
    const commit = revisionAnswer.safeParse(answer.body).data?.sha;
    if (commit === undefined || !isCommit(commit))
      throw new HubAnswerFailure(`it names no commit for revision "${revision}"`);
    return { repo, commit, files: await listCommit(hub, `${api}/tree/${commit}?recursive=true`, deadline) };
  } catch (error) {
    signal.throwIfAborted();
    if (!timeout.aborted) throw error;
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
    next = answer.next && onHub(answer.next, address);
  }
  return files;
}

/** Returns a link on the hub itself, whatever host it names: mirrors return links to the original hub. */
function onHub(link: string, address: string): string {
  const { pathname, search } = new URL(link);
  return new URL(pathname + search, address).href;
}

/** Returns the file of an entry; empty for entries that are no files or cannot be downloaded. */
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

interface JsonAnswer {
  readonly body: unknown;
  readonly next: string | undefined;
}

/**
 * Requests JSON of bounded size from the hub.
 * @throws HubHttpFailure, HubNetworkFailure; HubAnswerFailure if it is too large or no JSON
 */
async function readJson(hub: HubFetch, address: string | URL, signal: AbortSignal): Promise<JsonAnswer> {
  const headers = { accept: "application/json" };
  const { response, fromHub } = await hub.request(address, { headers, signal });
  if (!response.ok) throw await httpFailure(response, fromHub);
  return { body: await parse(response), next: nextPage(response.headers.get("link")) };
}

/** Parses JSON as data arrives, so that large or deeply nested answers do not block the event loop. */
async function parse(response: Response): Promise<unknown> {
  const json = new JsonReader("An answer");
  const decoder = new TextDecoder();
  let bytes = 0;
  try {
    for await (const chunk of readStream(response.body ?? new Blob().stream())) {
      bytes += chunk.length;
      if (bytes > MAX_JSON_BYTES)
        throw new HubAnswerFailure(`an answer is larger than ${MAX_JSON_BYTES / 2 ** 20} MiB`);
      json.write(decoder.decode(chunk, { stream: true }));
    }
    return endJson(json);
  } catch (error) {
    if (error instanceof SyntaxError) throw new HubAnswerFailure("an answer is not JSON", { cause: error });
    if (error instanceof ServiceError)
      throw new HubAnswerFailure("an answer is nested too deep or has too many values", { cause: error });
    throw error;
  }
}

function endJson(json: JsonReader): unknown {
  try {
    return json.end();
  } catch (error) {
    // The connection may have been cut, so a retry may succeed.
    throw new HubAnswerFailure("an answer is cut off", { cause: error, mayDiffer: true });
  }
}

/** Returns the link to the next page (RFC 8288). */
function nextPage(header: string | null): string | undefined {
  const link = /<(https?:\/\/[^>]+)>;\s*rel="?next"?/.exec(header ?? "")?.[1];
  return link !== undefined && URL.canParse(link) ? link : undefined;
}

/** A repository of the hub that has GGUF files. */
export interface HubRepo {
  readonly repo: string;
  readonly downloads: number;
  readonly likes: number;
  /** ISO 8601; undefined: unknown. */
  readonly updatedAt: string | undefined;
  /** True if its owner grants access on request only. */
  readonly isGated: boolean;
  /** Task on the hub, such as "text-generation". */
  readonly task: string | undefined;
}

/** Facts about a repository on the hub apart from its files. */
export interface RepoInfo extends Pick<HubRepo, "isGated" | "task"> {
  /** Number of weights; undefined if the hub has not read a GGUF header. */
  readonly parameters: number | undefined;
  /** Tokens of context the model was trained for; undefined: unknown. */
  readonly trainedContext: number | undefined;
}

/** Requested fields; without them the hub also sends the names of all files. */
const REPO_FIELDS = ["downloads", "likes", "lastModified", "gated", "pipeline_tag"];
const INFO_FIELDS = ["gated", "pipeline_tag", "gguf"];

/** false, or how access is granted: "auto" or "manual". */
const gatedSchema = z.union([z.boolean(), z.string()]).catch(false);
const taskSchema = z.string().optional().catch(undefined);

/** Entry of GET /api/models, the fields that are used; other hubs leave some out. */
const repoEntry = z.object({
  id: z.string(),
  downloads: z.number().catch(0),
  likes: z.number().catch(0),
  lastModified: z.string().optional().catch(undefined),
  gated: gatedSchema,
  pipeline_tag: taskSchema,
});

/** Answer of GET /api/models/{repo}; `gguf` has facts that the hub has read in a GGUF header. */
const infoAnswer = z.object({
  gated: gatedSchema,
  pipeline_tag: taskSchema,
  gguf: z
    .object({
      total: z.int().positive().optional().catch(undefined),
      context_length: z.int().positive().optional().catch(undefined),
    })
    .optional()
    .catch(undefined),
});

/**
 * Finds repositories with GGUF files whose names match, the most downloaded first.
 * @throws HubHttpFailure, HubNetworkFailure, HubAnswerFailure
 */
export async function searchRepos(
  hub: HubFetch,
  query: string,
  limit: number,
  signal: AbortSignal,
): Promise<readonly HubRepo[]> {
  const address = new URL(`${hub.url}/api/models`);
  const params = { search: query, filter: "gguf", sort: "downloads", limit: String(limit) };
  address.search = new URLSearchParams([
    ...Object.entries(params),
    ...REPO_FIELDS.map((field) => ["expand", field]),
  ]).toString();
  const { body } = await readJson(hub, address, signal);
  const list = z.array(repoEntry).safeParse(body);
  if (!list.success) throw new HubAnswerFailure("it is not a list of repositories", { cause: list.error });
  return list.data
    .filter(({ id }) => isRepoName(id))
    .slice(0, limit)
    .map(({ id, downloads, likes, lastModified, gated, pipeline_tag: task }) => ({
      repo: id,
      downloads,
      likes,
      updatedAt: lastModified,
      isGated: gated !== false,
      task,
    }));
}

/** Reads facts about a repository; empty on errors, because not every hub has them. */
export async function repoInfo(hub: HubFetch, repo: string, signal: AbortSignal): Promise<RepoInfo> {
  const fields = INFO_FIELDS.map((field) => `expand=${field}`).join("&");
  const address = `${hub.url}/api/models/${repo}?${fields}`;
  // Errors of the repository or the network also occur in the listing of its files, which reports them.
  const answer = await readJson(hub, address, signal).catch(() => undefined);
  const { data } = infoAnswer.safeParse(answer?.body);
  return {
    isGated: (data?.gated ?? false) !== false,
    task: data?.pipeline_tag,
    parameters: data?.gguf?.total,
    trainedContext: data?.gguf?.context_length,
  };
}
