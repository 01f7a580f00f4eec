import { z } from "zod";
import { isRepoName } from "../cache/repo-cache.ts";
import { HubAnswerFailure } from "./hub-error.ts";
import type { HubFetch } from "./hub-fetch.ts";
import { readJson } from "./list-repo.ts";

/** A repository of the hub that has GGUF files. */
export interface HubRepo {
  /** owner/repository */
  readonly repo: string;
  readonly downloads: number;
  readonly likes: number;
  /** ISO 8601; undefined: the hub does not say. */
  readonly updatedAt: string | undefined;
  /** Whether its owner gives it only to those who ask. */
  readonly isGated: boolean;
  /** What the hub says it is for, such as "text-generation". */
  readonly task: string | undefined;
}

/** What the hub knows of a repository apart from its files. */
export interface RepoInfo extends Pick<HubRepo, "isGated" | "task"> {
  /** Number of weights, if the hub has read it in a GGUF file. */
  readonly parameters: number | undefined;
  /** The same of the tokens of context that the model was trained for. */
  readonly trainedContext: number | undefined;
}

/** The fields that are asked for; without them the hub sends the names of all files. */
const REPO_FIELDS = ["downloads", "likes", "lastModified", "gated", "pipeline_tag"];
const INFO_FIELDS = ["gated", "pipeline_tag", "gguf"];

/** false, or how access is given: "auto" or "manual". */
const gatedSchema = z.union([z.boolean(), z.string()]).catch(false);
const taskSchema = z.string().optional().catch(undefined);

/** Entry of GET /api/models, the parts that are used; other hubs leave some out. */
const repoEntry = z.object({
  id: z.string(),
  downloads: z.number().catch(0),
  likes: z.number().catch(0),
  lastModified: z.string().optional().catch(undefined),
  gated: gatedSchema,
  pipeline_tag: taskSchema,
});

/** Answer of GET /api/models/{repo}: of a repository with GGUF files, what the hub has read in one of them. */
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
 * Repositories with GGUF files whose names match, those downloaded most first.
 * @throws HubHttpFailure, HubNetworkFailure, HubAnswerFailure
 */
export async function searchRepos(
  hub: HubFetch,
  query: string,
  limit: number,
  signal: AbortSignal,
): Promise<readonly HubRepo[]> {
  const address = new URL(`${hub.url}/api/models`);
  const choice = { search: query, filter: "gguf", sort: "downloads", limit: String(limit) };
  address.search = new URLSearchParams([
    ...Object.entries(choice),
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

/** What the hub knows of a repository; nothing if it does not say, for it may be one that only lists files. */
export async function repoInfo(hub: HubFetch, repo: string, signal: AbortSignal): Promise<RepoInfo> {
  const fields = INFO_FIELDS.map((field) => `expand=${field}`).join("&");
  const address = `${hub.url}/api/models/${repo}?${fields}`;
  // What is wrong with the repository or the network is also wrong with the list of its files, which says so.
  const answer = await readJson(hub, address, signal).catch(() => undefined);
  const { data } = infoAnswer.safeParse(answer?.body);
  return {
    isGated: (data?.gated ?? false) !== false,
    task: data?.pipeline_tag,
    parameters: data?.gguf?.total,
    trainedContext: data?.gguf?.context_length,
  };
}
