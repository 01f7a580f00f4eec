import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { stripTypeScriptTypes } from "node:module";
import path from "node:path";
import { text } from "node:stream/consumers";
import { BrowserPage } from "./browser-page.ts";

const ROOT = path.join(import.meta.dirname, "../..");
/**
 * Runs test files of this repository in a page, one after the other: TypeScript loses its types on the way, vitest and
 * node:fs are small stand-ins (test/support/page).
 * @param files - paths from the repository's root
 * @returns for each path what runTests() of the stand-in gives, or the error that kept it from running
 */
export async function runTestFilesInPage(
  chromium: string,
  files: readonly string[],
): Promise<Readonly<Record<string, unknown>>> {
  const report = Promise.withResolvers<Record<string, unknown>>();
  const server = createServer((request, response) => {
    answer(files, request, response, report.resolve).catch(report.reject);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("the server has no port");
  try {
    await using _ = await BrowserPage.open(chromium, `http://127.0.0.1:${address.port}/`);
    return await report.promise;
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function answer(
  files: readonly string[],
  request: IncomingMessage,
  response: ServerResponse,
  report: (results: Record<string, unknown>) => void,
): Promise<void> {
  const { pathname } = new URL(request.url ?? "/", "http://localhost");
  if (request.method === "POST") {
    report(JSON.parse(await text(request)));
    response.end();
  } else if (pathname === "/") {
    response.setHeader("content-type", "text/html");
    response.end(page(files));
  } else {
    const source = path.join(ROOT, pathname);
    if (!source.startsWith(ROOT) || !existsSync(source)) {
      response.writeHead(404).end();
      return;
    }
    const isScript = /\.[jt]s$/.test(pathname);
    response.setHeader("content-type", isScript ? "text/javascript" : "application/octet-stream");
    response.end(
      pathname.endsWith(".ts") ? stripTypeScriptTypes(readFileSync(source, "utf8")) : readFileSync(source),
    );
  }
}

function page(files: readonly string[]): string {
  const imports = { vitest: "/test/support/page/vitest.js", "node:fs": "/test/support/page/node-fs.js" };
  return `<!doctype html><meta charset="utf-8">
<script type="importmap">${JSON.stringify({ imports })}</script>
<script type="module">
  import { runTests } from "vitest";
  const results = {};
  for (const file of ${JSON.stringify(files)}) {
    try {
      await import("/" + file);
      results[file] = await runTests();
    } catch (error) {
      results[file] = { problem: String(error?.stack ?? error) };
    }
  }
  await fetch("/", { method: "POST", body: JSON.stringify(results) });
</script>`;
}
