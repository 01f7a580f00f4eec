import { z } from "zod";
import { ServiceError, toError } from "../../errors/service-error.ts";
import { shardFiles } from "../../models/names/model-file-names.ts";

const DEFAULT_HUB = "https://huggingface.co";
/** Limit of pages of a file list, more than any repository of models has. */
const MAX_PAGES = 50;

/** Used fields of an entry of GET /api/models/{repo}/tree/{revision}. */
const entrySchema = z.object({
  path: z.string(),
  lfs: z.object({ oid: z.string(), size: z.number() }).optional(),
});

export interface HubOptions {
  /** Branch, tag or commit. Default: main. */
  readonly revision?: string;
  /** Access token for gated models. */
  readonly token?: string;
  /** Address of the hub or of a mirror. */
  readonly hub?: string;
  readonly signal?: AbortSignal;
}

interface RemoteFile {
  readonly role: "model" | "projector";
  readonly name: string;
  readonly sha256: string;
  readonly size_bytes: number;
  readonly url: string;
}

/**
 * Finds the files of a model in a repository of the hub: the file or all of its shards, and its projector.
 * @param repo owner/repository
 * @throws ServiceError hub_repo_not_found, hub_access_denied, no_gguf_in_repo or hub_unreachable
 */
export async function hubFiles(
  repo: string,
  file: string,
  { projector, ...options }: HubOptions & { readonly projector?: string },
): Promise<RemoteFile[]> {
  const { hub = DEFAULT_HUB, revision = "main" } = options;
  const entries = await listRepo(repo, options);
  const names = [
    ...shardFiles(file).map((name) => ({ role: "model" as const, name })),
    ...(projector === undefined ? [] : [{ role: "projector" as const, name: projector }]),
  ];
  return names.map(({ role, name }) => {
    const { lfs } = entries.find(({ path }) => path === name) ?? {};
    if (!lfs) throw new ServiceError("no_gguf_in_repo", `The repository ${repo} has no file ${name}.`);
    const path = name.split("/").map(encodeURIComponent).join("/");
    return {
      role,
      name,
      sha256: lfs.oid,
      size_bytes: lfs.size,
      url: `${hub}/${repo}/resolve/${encodeURIComponent(revision)}/${path}`,
    };
  });
}

/**
 * Lists the paths of the files in a repository of the hub.
 * @throws ServiceError hub_repo_not_found, hub_access_denied or hub_unreachable
 */
export async function hubPaths(repo: string, options: HubOptions): Promise<string[]> {
  return (await listRepo(repo, options)).map(({ path }) => path);
}

async function listRepo(repo: string, options: HubOptions): Promise<z.output<typeof entrySchema>[]> {
  const { hub = DEFAULT_HUB, revision = "main" } = options;
  const entries: z.output<typeof entrySchema>[] = [];
  let next: string | undefined =
    `${hub}/api/models/${repo}/tree/${encodeURIComponent(revision)}?recursive=true`;
  for (let page = 0; next !== undefined && page < MAX_PAGES; page += 1) {
    const answer: Response = await fetchHub(next, repo, options);
    entries.push(...z.array(entrySchema).parse(await answer.json()));
    next = /<([^>]+)>;\s*rel="next"/.exec(answer.headers.get("link") ?? "")?.[1];
  }
  return entries;
}

async function fetchHub(address: string, repo: string, { token, signal }: HubOptions): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(address, { headers: hubHeaders(token), ...(signal && { signal }) });
  } catch (error) {
    signal?.throwIfAborted();
    throw new ServiceError("hub_unreachable", `The hub cannot be reached: ${toError(error).message}.`, {
      cause: error,
    });
  }
  if (answer.ok) return answer;
  if (answer.status === 401 || answer.status === 403) {
    throw new ServiceError(
      "hub_access_denied",
      `The hub does not let you read ${repo}: it does not exist, or needs a token of an account that may.`,
    );
  }
  if (answer.status === 404) {
    throw new ServiceError("hub_repo_not_found", `The hub has no repository ${repo} with that revision.`);
  }
  throw new ServiceError("hub_unreachable", `The hub answered with status ${answer.status}.`);
}

export function hubHeaders(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}
