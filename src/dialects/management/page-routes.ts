import type { AppContext } from "../../http/app-env.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { connectQuery } from "./connect-query.ts";
import { keptPageRoutes } from "./kept-page-routes.ts";
import type { ManagementServices } from "./management-services.ts";
import {
  DOCS_FILES,
  EXPERIMENTS_FILES,
  FRAME_FILES,
  type PageFile,
  type PageFileName,
  UI_FILES,
} from "./page-files.ts";
import { pagePolicy } from "./page-policy.ts";

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
