import type { StoredRepo } from "./fixture-hub-content.ts";

/** Fields of a repository that the real hub always sends. */
const ALWAYS = ["_id", "id"];

/**
 * Answer of GET /api/models: repositories whose names hold the words of `search`, of those that have the tag `filter`,
 * with the fields of `expand`.
 */
export function searchAnswer(repos: readonly StoredRepo[], query: URLSearchParams): object[] {
  const words = (query.get("search") ?? "").toLowerCase().split(/\s+/);
  const filters = query.getAll("filter");
  return repos
    .filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)))
    .filter((repo) => filters.every((filter) => tagsOf(repo).includes(filter)))
    .toSorted((one, other) =>
      query.get("sort") === "downloads" ? (other.info.downloads ?? 0) - (one.info.downloads ?? 0) : 0,
    )
    .slice(0, Number(query.get("limit") ?? 1000))
    .map((repo) => infoAnswer(repo, query));
}

/** Answer of GET /api/models/<repo>. */
export function infoAnswer(repo: StoredRepo, query: URLSearchParams): object {
  const fields = {
    _id: "1",
    id: repo.name,
    sha: repo.commit,
    gated: repo.gatedTo === undefined ? false : "manual",
    tags: tagsOf(repo),
    ...repo.info,
  };
  const wanted = new Set([...ALWAYS, ...query.getAll("expand")]);
  return Object.fromEntries(Object.entries(fields).filter(([name]) => wanted.has(name)));
}

function tagsOf({ files }: StoredRepo): string[] {
  return [...files.keys()].some((file) => file.endsWith(".gguf")) ? ["gguf"] : [];
}
