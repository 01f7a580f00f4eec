import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { createReadStream } from "node:fs";
import os from "node:os";
import path from "node:path";
import { buildBrowser } from "../../scripts/release/build-browser.ts";
import { preparedEngine } from "./engine-fixture.ts";
import { PROGRAM } from "./program.ts";

const TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript",
  ".wasm": "application/wasm",
  ".html": "text/html",
};

/** Isolates a page from other origins, which shared memory and with it threads need. */
const ISOLATION = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
};

/** A web site that holds the engine for browsers, its WebAssembly and the models that ship. */
export interface BrowserSite extends AsyncDisposable {
  readonly url: string;
}

/** Serves an empty page at /, the bundle at /browser/, the WebAssembly at /engine.wasm and models at /models/. */
export async function startBrowserSite(): Promise<BrowserSite> {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-site-"));
  await buildBrowser(folder);
  const { wasmPath } = await preparedEngine();
  const server = createServer((request, response) => {
    for (const [name, value] of Object.entries(ISOLATION)) response.setHeader(name, value);
    const file = fileOf(new URL(request.url ?? "/", "http://site").pathname);
    if (request.url === "/") {
      response.setHeader("content-type", "text/html");
      response.end("<!doctype html><title>Engine</title>");
    } else if (file === undefined || !existsSync(file)) {
      response.writeHead(404).end();
    } else {
      response.setHeader("content-type", TYPES[path.extname(file)] ?? "application/octet-stream");
      createReadStream(file).pipe(response);
    }
  });
  const fileOf = (pathname: string): string | undefined => {
    if (pathname === "/engine.wasm") return wasmPath;
    const [, place, name = ""] = pathname.split("/");
    if (place === "browser") return path.join(folder, path.basename(name));
    return place === "models" ? path.join(PROGRAM, "models", path.basename(name)) : undefined;
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("the site has no port");
  return {
    url: `http://127.0.0.1:${address.port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
