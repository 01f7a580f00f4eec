import { once } from "node:events";
import { createReadStream, statSync } from "node:fs";
import http from "node:http";
import path from "node:path";

export interface StaticServer extends AsyncDisposable {
  readonly url: string;
}

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".css": "text/css",
  ".js": "text/javascript",
  ".json": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
  ".webmanifest": "application/manifest+json",
};

/**
 * Serves a folder.
 * @param under - the path of the folder, such as "/repo"
 * @param isIsolated - whether pages are isolated from other origins, as threads in them need it; hosts of static files do
 * not do it
 */
export async function startStaticServer(
  folder: string,
  { under = "", isIsolated = true } = {},
): Promise<StaticServer> {
  const isolation = {
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
  };
  const server = http.createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://localhost");
    if (!pathname.startsWith(`${under}/`)) {
      response.writeHead(404).end();
      return;
    }
    const place = pathname.slice(under.length);
    const file = path.join(folder, place.endsWith("/") ? `${place}index.html` : place);
    const type = TYPES[path.extname(file)];
    if (type === undefined || !statSync(file, { throwIfNoEntry: false })?.isFile()) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { "content-type": type, ...(isIsolated && isolation) });
    createReadStream(file).pipe(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `http://127.0.0.1:${address.port}${under}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
