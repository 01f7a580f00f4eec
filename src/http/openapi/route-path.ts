/** "/api/models/:name{.+}/unload" → "/api/models/{name}/unload". */
export function openApiPath(path: string): string {
  return path.replaceAll(/:(\w+)(?:\{[^/]*?\}(?=\/|$))?/g, "{$1}");
}
