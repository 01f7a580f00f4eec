import { TrieRouter } from "hono/router/trie-router";
import { openApiPath, type Route } from "./route.ts";

/** No path that is served has as many parts, so longer ones need no help. */
const MOST_PARTS = 12;

/**
 * Finds, for paths that are not served, those that may be meant: clients are often given a base URL without the "/v1" or the
 * "/ollama" that theirs needs, or with one too many.
 */
export function likelyPaths(routes: readonly Route[]): (method: string, path: string) => string | undefined {
  const router = new TrieRouter<string>();
  // A path that takes in everything below it is not what anybody has missed.
  const single = routes.filter(({ path }) => !path.includes("*"));
  for (const route of single) router.add(route.method, route.path, openApiPath(route.path));
  const bases = [...new Set(single.map(({ path }) => path.slice(0, path.indexOf("/", 1) + 1)))]
    .filter((base) => base !== "")
    .map((base) => base.slice(0, -1))
    // What most clients have left out.
    .toSorted((one, other) => Number(other === "/v1") - Number(one === "/v1"));
  return (method, path) => {
    const parts = path.split("/");
    if (parts.length > MOST_PARTS) return undefined;
    const ends = [path, ...parts.slice(2).map((_, index) => `/${parts.slice(index + 2).join("/")}`)];
    const candidates = ends.flatMap((end) => (end === "/" ? [] : ["", ...bases].map((base) => base + end)));
    return candidates.find((each) => router.match(method, each)[0].length > 0);
  };
}
