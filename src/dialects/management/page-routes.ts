import type { AppContext } from "../../http/app-env.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import type { ManagementServices } from "./management-services.ts";

/** The files of the page and their types: nothing else under /ui/ exists, so no path is ever built from a request. */
const PAGE_FILES = {
  "/ui/": { file: "ui/index.html", type: "text/html" },
  "/ui/app.js": { file: "ui/app.js", type: "text/javascript" },
  "/ui/style.css": { file: "ui/style.css", type: "text/css" },
} as const;

export type PageFileName = (typeof PAGE_FILES)[keyof typeof PAGE_FILES]["file"];

/** A file of a page, and what tells it from what it was in another version. */
export interface PageFile {
  readonly content: Uint8Array<ArrayBuffer>;
  /** With its quotes. */
  readonly etag: string;
}

/** The page talks to its own daemon only, and text of a model can never become markup or script. */
const PAGE_CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const tag = "Page";

/** The root, and the page under /ui/ unless the configuration switches it off. */
export function pageRoutes(services: ManagementServices): readonly Route[] {
  const root = defineRoute({
    method: "GET",
    path: "/",
    tag,
    summary: "The page for browsers, else what this is",
    answers: [{ description: "Name, version and where to go on." }],
    alwaysOn: true,
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
  });
  if (!services.config.ui) return [root];
  return [
    root,
    defineRoute({
      method: "GET",
      path: "/ui",
      tag,
      summary: "Redirects to /ui/",
      answers: [{ status: 302, contentType: "text/plain", description: "To /ui/." }],
      alwaysOn: true,
      handle: (context) => context.redirect("/ui/"),
    }),
    ...Object.entries(PAGE_FILES).map(([path, { file, type }]) =>
      defineRoute({
        method: "GET",
        path,
        tag,
        summary: path === "/ui/" ? "The page: status, models, a chat" : `Part of the page: ${file.slice(3)}`,
        answers: [{ contentType: type, description: "The page." }],
        alwaysOn: true,
        handle: (context) => sendFile(context, services.pageFile(file), type),
      }),
    ),
  ];
}

/** Browsers keep the file and ask whether it is still the same, so that a new version is seen at once. */
function sendFile(context: AppContext, { content, etag }: PageFile, type: string): Response {
  const headers = { etag, "cache-control": "no-cache" };
  if (context.req.header("if-none-match") === etag) return context.body(null, 304, headers);
  return context.body(content, 200, {
    ...headers,
    "content-type": `${type}; charset=utf-8`,
    "content-security-policy": PAGE_CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
  });
}
