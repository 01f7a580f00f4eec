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
} from "../wire/page-files.ts";
import {
  isConnectOrigin,
  MAX_CONNECT_ORIGINS,
  pagePolicy,
  parseOrigins,
  withConnectSources,
} from "../wire/page-policy.ts";

/** Headers of the API reference, which may only connect to its own daemon. */
const DOCS_HEADERS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
};

/**
 * Headers of the page. It must be isolated from other origins to share memory with the engine's workers.
 * @param connect origins of other servers that the page may connect to
 */
function uiHeaders(connect: readonly string[]): Readonly<Record<string, string>> {
  return {
    "content-security-policy": pagePolicy(connect),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
  };
}

/**
 * Headers of the frame for tools. Its content policy is in the file, so that it also applies on other web servers. A
 * sandboxed frame has a different origin than the page.
 */
const FRAME_HEADERS = {
  "content-security-policy": "sandbox allow-scripts; frame-ancestors 'self'",
  "cross-origin-embedder-policy": "require-corp",
  "cross-origin-resource-policy": "cross-origin",
};

const root = { tag: "Page", alwaysOn: true } as const;
/** Options of page routes. The files are not secret; the page's data requires the API key. */
const page = { ...root, keyless: true } as const;
const documentation = { tag: "Documentation", alwaysOn: true } as const;

/** Routes of the root, the page under /ui/ unless it is disabled, and the API reference with its console. */
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
          ...pageFileRoutes(services, page, UI_FILES, uiHeaders, "The page: chat, models, monitor"),
          ...pageFileRoutes(
            services,
            page,
            FRAME_FILES,
            () => FRAME_HEADERS,
            "Frame that runs tools of the chat",
          ),
          ...pageFileRoutes(services, page, EXPERIMENTS_FILES, uiHeaders, "The page for experiments"),
          ...offlinePageRoutes(services),
        ]
      : []),
    redirect(documentation, "/docs/", "/docs"),
    ...pageFileRoutes(
      services,
      documentation,
      DOCS_FILES,
      () => DOCS_HEADERS,
      "API reference with a console",
    ),
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

/** Routes of files. The first file is the page; the others are its assets. */
function pageFileRoutes(
  services: ManagementServices,
  common: typeof page | typeof documentation,
  names: Readonly<Record<string, PageFileName>>,
  securityHeaders: (connect: readonly string[]) => Readonly<Record<string, string>>,
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
        sendPageFile(context, services.pageFile(name), contentType, securityHeaders(query.connect ?? [])),
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

/** Sends a file that browsers revalidate every time, so that they use a new version immediately. */
function sendPageFile(
  context: AppContext,
  { content, etag }: PageFile,
  type: string,
  securityHeaders: Readonly<Record<string, string>>,
): Response {
  const headers = { etag, "cache-control": "no-cache" };
  if (context.req.header("if-none-match") === etag) return context.body(null, 304, headers);
  return context.body(content, 200, {
    ...headers,
    "content-type": type.startsWith("text/") ? `${type}; charset=utf-8` : type,
    ...securityHeaders,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
  });
}

const publicPage = { method: "GET", tag: "Page", alwaysOn: true, keyless: true } as const;

/** Routes for the offline page: a service worker that caches it, and the list of its files. */
function offlinePageRoutes(services: ManagementServices): readonly Route[] {
  return [
    defineRoute({
      ...publicPage,
      path: "/ui/sw.js",
      summary: "Service worker of the page, which caches its files in the browser",
      answers: [{ contentType: "text/javascript", description: "The script." }],
      handle: async (context) =>
        sendFile(context, await services.browserScripts.read("sw.js"), {
          "content-type": "text/javascript; charset=utf-8",
          "cache-control": "no-cache",
          "content-security-policy": "default-src 'none'; script-src 'self'; connect-src 'self'",
          // The engine's files under /browser/ are outside the worker's default scope /ui/.
          "service-worker-allowed": "/",
          "x-content-type-options": "nosniff",
        }),
    }),
    defineRoute({
      ...publicPage,
      path: "/ui/files.json",
      summary: "List the files of the page with their SHA-256",
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

/** Scripts that a page loads to run the engine itself. */
const SCRIPTS = {
  "daybreak.js": "The engine for browsers, as a module",
  "engine-worker.js": "The worker of the engine for browsers",
  "store-worker.js": "The worker that stores models in the browser",
  "engine-compat.js": "The engine's script for browsers without memory64 or JSPI",
  "page.js": "The script of the page",
  "pdf-worker.js": "The worker that reads PDF files for the page",
  "experiments.js": "The script of the page for experiments",
} as const;

/** Path of chunks of the page's script, which it loads on demand. */
const CHUNK_PATH = "/browser/:part{page-[\\w-]+\\.js}";

/** Headers that let pages of other origins load these public files. */
const PUBLIC_HEADERS = {
  "cross-origin-resource-policy": "cross-origin",
  "x-content-type-options": "nosniff",
} as const;

/** Policy of workers: the engine's worker starts further workers from generated scripts (blob:). */
const WORKER_POLICY =
  "default-src 'none'; script-src 'self' blob: 'wasm-unsafe-eval'; worker-src blob:; connect-src 'self' blob:";

/** Cache-Control of files that never change: a year, the maximum in practice. */
const FOREVER = "public, max-age=31536000, immutable";

/** Routes of the engine for browsers: its scripts and its WebAssembly. */
export function browserRoutes(services: ManagementServices): readonly Route[] {
  return [
    ...Object.entries(SCRIPTS).map(([name, summary]) =>
      scriptRoute(services, `/browser/${name}`, summary, () => name),
    ),
    scriptRoute(
      services,
      CHUNK_PATH,
      "A part of the page's script",
      (context) => context.req.param("part") ?? "",
    ),
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

/** @param nameOf returns the name of the requested script */
function scriptRoute(
  services: ManagementServices,
  path: string,
  summary: string,
  nameOf: (context: AppContext) => string,
): Route {
  return defineRoute({
    ...publicPage,
    path,
    summary,
    query: connectQuery,
    answers: [{ contentType: "text/javascript", description: "The script." }],
    handle: async (context, { query }) =>
      sendFile(context, await services.browserScripts.read(nameOf(context)), {
        ...PUBLIC_HEADERS,
        "content-security-policy": withConnectSources(WORKER_POLICY, query.connect ?? []),
        "cross-origin-embedder-policy": "require-corp",
        "content-type": "text/javascript; charset=utf-8",
        "cache-control": "no-cache",
      }),
  });
}

function wasmRoute(name: string, summary: string, open: () => Promise<ServedFile>): Route {
  return defineRoute({
    ...publicPage,
    path: `/browser/${name}`,
    summary,
    description: "Cached forever if the query has its SHA-256 as `v`.",
    answers: [{ contentType: "application/wasm", description: "The WebAssembly." }],
    async handle(context) {
      const image = await open();
      return sendFile(context, image, {
        ...PUBLIC_HEADERS,
        "content-type": "application/wasm",
        "cache-control": context.req.query("v") === image.etag ? FOREVER : "no-cache",
      });
    },
  });
}

/** Query of the page and its scripts: additional origins for their policies. */
export const connectQuery = z.object({
  connect: z
    .string()
    .transform(parseOrigins)
    .pipe(
      z
        .array(
          z
            .string()
            .refine(isConnectOrigin, "must be origins such as http://127.0.0.1:8081, separated by spaces"),
        )
        .max(MAX_CONNECT_ORIGINS),
    )
    .optional()
    .describe(
      "Origins that the page may connect to besides its own daemon; the page adds those that the user configures.",
    ),
});
