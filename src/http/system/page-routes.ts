import { readFileSync } from "node:fs";
import { ServiceError } from "../../errors/service-error.ts";
import type { AppContext } from "../app-env.ts";
import { defineRoute, type Route } from "../route.ts";
import type { Services } from "../services.ts";

/** The files of the page and their types: nothing else under /ui/ exists, so no path is ever built from a request. */
const PAGE_FILES = {
  "": { file: "index.html", type: "text/html; charset=utf-8" },
  "app.js": { file: "app.js", type: "text/javascript; charset=utf-8" },
  "style.css": { file: "style.css", type: "text/css; charset=utf-8" },
} as const;
const PAGE_FOLDER = new URL("../../ui/", import.meta.url);

/** The page talks to its own daemon only, and text of a model can never become markup or script. */
const PAGE_CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const tag = "Page";

/** The root, and the page under /ui/ unless the configuration switches it off. */
export function pageRoutes(services: Services): readonly Route[] {
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
  const html = { contentType: "text/html", description: "The page." };
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
    ...Object.entries(PAGE_FILES).map(([name, { file, type }]) =>
      defineRoute({
        method: "GET",
        path: `/ui/${name}`,
        tag,
        summary: name === "" ? "The page: status, models, a chat" : `Part of the page: ${name}`,
        answers: [{ ...html, contentType: type.split(";", 1)[0]! }],
        alwaysOn: true,
        handle: (context) => pageFile(context, file, type),
      }),
    ),
  ];
}

function pageFile(context: AppContext, file: string, type: string): Response {
  let content: string;
  try {
    content = readFileSync(new URL(file, PAGE_FOLDER), "utf8");
  } catch (cause) {
    throw new ServiceError("internal_error", "The page's files are missing from this installation.", {
      cause,
    });
  }
  return context.body(content, 200, {
    "content-type": type,
    "content-security-policy": PAGE_CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
  });
}
