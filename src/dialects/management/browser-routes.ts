import type { AppContext } from "../../http/app-env.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { sendFile, type ServedFile } from "../../http/streaming/send-file.ts";
import { connectQuery } from "./connect-query.ts";
import type { ManagementServices } from "./management-services.ts";
import { withServers } from "./page-policy.ts";

/** The files that a page loads to run the engine itself. */
const SCRIPTS = {
  "daybreak.js": "The engine for browsers, as a module",
  "engine-worker.js": "Its worker",
  "store-worker.js": "The worker that stores models in the browser",
  "engine-compat.js": "The engine's script for browsers without memory64 or JSPI",
  "page.js": "The script of the page",
  "pdf-worker.js": "The worker that reads PDF files for the page",
  "experiments.js": "The script of the page for experiments",
} as const;

/** The page loads these when it needs them. */
const PART = "/browser/:part{page-[\\w-]+\\.js}";

const common = { method: "GET", tag: "Page", alwaysOn: true, keyless: true } as const;

/** Also for pages of other origins, which see in them only what everybody can have. */
const PUBLIC = {
  "cross-origin-resource-policy": "cross-origin",
  "x-content-type-options": "nosniff",
} as const;

/** A worker has a policy of its own: it runs llama.cpp in workers whose scripts it has put together. */
const WORKER_POLICY =
  "default-src 'none'; script-src 'self' blob: 'wasm-unsafe-eval'; worker-src blob:; connect-src 'self' blob:";

/** A year, which is what browsers keep a file for that never changes. */
const FOREVER = "public, max-age=31536000, immutable";

/** The engine for browsers: its scripts, and its WebAssembly. */
export function browserRoutes(services: ManagementServices): readonly Route[] {
  return [
    ...Object.entries(SCRIPTS).map(([name, summary]) =>
      scriptRoute(services, `/browser/${name}`, summary, () => name),
    ),
    scriptRoute(services, PART, "A part of the page's script", (context) => context.req.param("part") ?? ""),
    wasmRoute(
      "engine.wasm",
      "llama.cpp as WebAssembly, as the daemon's own engines run it",
      async () => await services.engineImage(),
    ),
    wasmRoute(
      "engine-compat.wasm",
      "The same for browsers without memory64 or JSPI",
      async () => await services.compatImage(),
    ),
  ];
}

/** @param nameOf which script a request asks for */
function scriptRoute(
  services: ManagementServices,
  path: string,
  summary: string,
  nameOf: (context: AppContext) => string,
): Route {
  return defineRoute({
    ...common,
    path,
    summary,
    query: connectQuery,
    answers: [{ contentType: "text/javascript", description: "The script." }],
    handle: async (context, { query }) =>
      sendFile(context, await services.browserScripts.read(nameOf(context)), {
        ...PUBLIC,
        "content-security-policy": withServers(WORKER_POLICY, query.connect ?? []),
        "cross-origin-embedder-policy": "require-corp",
        "content-type": "text/javascript; charset=utf-8",
        "cache-control": "no-cache",
      }),
  });
}

function wasmRoute(name: string, summary: string, open: () => Promise<ServedFile>): Route {
  return defineRoute({
    ...common,
    path: `/browser/${name}`,
    summary,
    description: "Cached forever if the query has its SHA-256 as `v`.",
    answers: [{ contentType: "application/wasm", description: "The WebAssembly." }],
    async handle(context) {
      const image = await open();
      return sendFile(context, image, {
        ...PUBLIC,
        "content-type": "application/wasm",
        "cache-control": context.req.query("v") === image.etag ? FOREVER : "no-cache",
      });
    },
  });
}
