import { z } from "zod";
import { IMAGE_SHA256 } from "../../../wasm/engine-image.ts";
import type { AppContext } from "../../http/app-env.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { sendFile, type ServedFile } from "../../http/streaming/send-file.ts";
import type { ManagementServices } from "./management-services.ts";
import {
  DOCS_FILES,
  EXPERIMENTS_FILES,
  FRAME_FILES,
  isCacheable,
  type PageFile,
  type PageFileName,
  pageList,
  pageListSchema,
  sha256Of,
  UI_FILES,
} from "./page-files.ts";
import { isOrigin, MAX_SERVERS, pagePolicy, serversOf, withServers } from "./page-policy.ts";

/** A page can only connect to its own daemon, and a model's text can never run as a script. */
const DOCS_HEADERS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
};

/**
 * Only a page isolated from other origins has memory to share with the workers of the engine.
 * @param connect other servers that the page may ask, as origins
 */
function uiHeaders(connect: readonly string[]): Readonly<Record<string, string>> {
  return {
    "content-security-policy": pagePolicy(connect),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
  };
}

/** Its policy is in the file, so that it holds on other web servers, too. A sandboxed frame is another origin than the page. */
const FRAME_HEADERS = {
  "content-security-policy": "sandbox allow-scripts; frame-ancestors 'self'",
  "cross-origin-embedder-policy": "require-corp",
  "cross-origin-resource-policy": "cross-origin",
};

const root = { tag: "Page", alwaysOn: true } as const;
/** Nothing in the files of the page is secret; what it shows it gets with a key. */
const page = { ...root, keyless: true } as const;
const documentation = { tag: "Documentation", alwaysOn: true } as const;

/** The root, the page under /ui/ unless it is disabled, and the API reference with its console. */
export function pageRoutes(services: ManagementServices): readonly Route[] {
  return [
    defineRoute({
      ...root,
      method: "GET",
      path: "/",
      summary: "Redirect browsers to the page; otherwise describe the server",
      answers: [{ description: "Name, version and links." }],
      handle(context) {
        if (services.config.ui && context.req.header("accept")?.includes("text/html"))
          return context.redirect("/ui/");
        return context.json({
          name: "daybreak",
          version: services.version,
          docs: "/docs",
          openapi: "/openapi.json",
        });
      },
    }),
    ...(services.config.ui
      ? [
          redirect(page, "/ui", "/ui/"),
          redirect(page, "/ui/experiments", "/ui/experiments/"),
          ...files(services, page, UI_FILES, uiHeaders, "The page: chat, models, monitor"),
          ...files(
            services,
            page,
            FRAME_FILES,
            () => FRAME_HEADERS,
            "The frame in which a tool of the chat runs",
          ),
          ...files(services, page, EXPERIMENTS_FILES, uiHeaders, "The page for experiments"),
          ...keptPageRoutes(services),
        ]
      : []),
    redirect(documentation, "/docs/", "/docs"),
    ...files(services, documentation, DOCS_FILES, () => DOCS_HEADERS, "API reference with a console"),
  ];
}

function redirect(common: typeof page | typeof documentation, path: string, to: string): Route {
  return defineRoute({
    ...common,
    method: "GET",
    path,
    summary: `Redirect to ${to}`,
    answers: [{ status: 302, contentType: "text/plain", description: `To ${to}.` }],
    handle: (context) => context.redirect(to),
  });
}

/** The first file is the page; the others are its assets. */
function files(
  services: ManagementServices,
  common: typeof page | typeof documentation,
  names: Readonly<Record<string, PageFileName>>,
  security: (connect: readonly string[]) => Readonly<Record<string, string>>,
  summary: string,
): Route[] {
  return Object.entries(names).map(([path, name], index) => {
    const contentType = contentTypeOf(name);
    return defineRoute({
      ...common,
      method: "GET",
      path,
      summary: index === 0 ? summary : `Part of the page: ${name.split("/").at(-1)}`,
      query: connectQuery,
      answers: [{ contentType, description: "The file." }],
      handle: (context, { query }) =>
        sendPageFile(context, services.pageFile(name), contentType, security(query.connect ?? [])),
    });
  });
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript",
  css: "text/css",
  html: "text/html",
  svg: "image/svg+xml",
  png: "image/png",
  webmanifest: "application/manifest+json",
};

function contentTypeOf(name: PageFileName): string {
  return CONTENT_TYPES[name.split(".").at(-1) ?? ""] ?? "application/octet-stream";
}

/** Browsers revalidate a cached file every time, so that they see a new version immediately. */
function sendPageFile(
  context: AppContext,
  { content, etag }: PageFile,
  type: string,
  security: Readonly<Record<string, string>>,
): Response {
  const headers = { etag, "cache-control": "no-cache" };
  if (context.req.header("if-none-match") === etag) return context.body(null, 304, headers);
  return context.body(content, 200, {
    ...headers,
    "content-type": type.startsWith("text/") ? `${type}; charset=utf-8` : type,
    ...security,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
  });
}

const keptPageRoutesCommon = { method: "GET", tag: "Page", alwaysOn: true, keyless: true } as const;

/** What keeps the page in a browser, which then shows it without a daemon: a service worker, and the list of its files. */
function keptPageRoutes(services: ManagementServices): readonly Route[] {
  return [
    defineRoute({
      ...keptPageRoutesCommon,
      path: "/ui/sw.js",
      summary: "The service worker of the page, which keeps its files in the browser",
      answers: [{ contentType: "text/javascript", description: "The script." }],
      handle: async (context) =>
        sendFile(context, await services.browserScripts.read("sw.js"), {
          "content-type": "text/javascript; charset=utf-8",
          "cache-control": "no-cache",
          "content-security-policy": "default-src 'none'; script-src 'self'; connect-src 'self'",
          // The engine's files are beside the page's.
          "service-worker-allowed": "/",
          "x-content-type-options": "nosniff",
        }),
    }),
    defineRoute({
      ...keptPageRoutesCommon,
      path: "/ui/files.json",
      summary: "The files of the page with their SHA-256",
      answers: [{ description: "The list.", schema: pageListSchema }],
      handle: async (context) => {
        const list = await pageList([...(await pageFiles(services)), ...(await engineFiles(services))]);
        return context.json(list, 200, { "cache-control": "no-store" });
      },
    }),
  ];
}

async function pageFiles(services: ManagementServices) {
  const all = Object.entries({ ...UI_FILES, ...FRAME_FILES, ...EXPERIMENTS_FILES });
  return await Promise.all(
    all.map(async ([path, name]) => ({
      path: path.slice(1),
      sha256: await sha256Of(services.pageFile(name).content),
    })),
  );
}

async function engineFiles(services: ManagementServices) {
  const { browserScripts } = services;
  const scripts = (await browserScripts.names()).filter(isCacheable);
  return await Promise.all([
    ...scripts.map(async (name) => ({
      path: `browser/${name}`,
      sha256: (await browserScripts.read(name)).etag,
    })),
    services
      .engineImage()
      .then(({ etag }) => ({ path: `browser/engine.wasm?v=${IMAGE_SHA256}`, sha256: etag })),
  ]);
}

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
    ...keptPageRoutesCommon,
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
    ...keptPageRoutesCommon,
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

/** The query of what the page loads that asks servers. */
export const connectQuery = z.object({
  connect: z
    .string()
    .transform(serversOf)
    .pipe(
      z
        .array(
          z.string().refine(isOrigin, "must be origins such as http://127.0.0.1:8081, separated by spaces"),
        )
        .max(MAX_SERVERS),
    )
    .optional()
    .describe(
      "Origins that the page may connect to besides its own daemon; the page adds those that its user names.",
    ),
});
