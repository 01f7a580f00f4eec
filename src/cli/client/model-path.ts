/** Path of a model's own routes. A name may hold colons and slashes, as hub specs do: each is one segment here. */
export function modelPath(name: string, route?: "unload" | "modelfile"): string {
  const path = `/api/models/${encodeURIComponent(name)}`;
  return route ? `${path}/${route}` : path;
}
