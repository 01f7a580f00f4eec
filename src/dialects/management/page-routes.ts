import { z } from "zod";
import type { AppContext } from "../../http/app-env.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import type { ManagementServices } from "./management-services.ts";

/** A file of a page that the daemon serves. */
export interface PageFile {
  readonly content: Uint8Array<ArrayBuffer>;
  /** Including the quotes. */
  readonly etag: string;
}

/** The files of the pages by path. A file name is never built from a request. */
const UI_FILES = {
  "/ui/": "ui/index.html",
  "/ui/page.css": "ui/page.css",
  "/ui/models.css": "ui/models.css",
  "/ui/monitor.css": "ui/monitor.css",
  "/ui/style.css": "ui/style.css",
} as const;
/** Runs the tools of a chat; src/ui/tools/sandbox.ts puts it into a frame without an origin. */
const FRAME_FILES = { "/ui/tool-frame.html": "ui/tool-frame.html" } as const;
const EXPERIMENTS_FILES = { "/ui/experiments/": "ui/experiments/index.html" } as const;
const DOCS_FILES = {
  "/docs": "ui/docs/index.html",
  "/docs/console.js": "ui/docs/console.js",
  "/docs/swagger-ui-bundle.js": "ui/docs/swagger-ui-bundle.js",
  "/docs/swagger-ui.css": "ui/docs/swagger-ui.css",
} as const;
export type PageFileName =
  | (typeof UI_FILES)[keyof typeof UI_FILES]
  | (typeof FRAME_FILES)[keyof typeof FRAME_FILES]
  | (typeof EXPERIMENTS_FILES)[keyof typeof EXPERIMENTS_FILES]
  | (typeof DOCS_FILES)[keyof typeof DOCS_FILES];

/** A page can only connect to its own daemon, and a model's text can never run as a script. */
const DOCS_HEADERS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
};

/**
 * The page may also run the engine, in workers; only a page isolated from other origins has memory to share with them.
 * @param connect other servers that the page may ask, as origins
 */
function uiHeaders(connect: readonly string[]): Readonly<Record<string, string>> {
  const servers = ["'self'", "blob:", ...connect].join(" ");
  return {
    "content-security-policy": `default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:; style-src 'self'; connect-src ${servers}; img-src data: blob:; frame-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
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

/** Other daemons and MCP servers of one page: more than anybody has, and few enough for a header. */
const MAX_SERVERS = 20;

const uiQuery = z.object({
  connect: z
    .string()
    .transform((text) => text.split(" ").filter((origin) => origin !== ""))
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

/** Nothing else may get into a header. */
function isOrigin(text: string): boolean {
  return /^https?:$/.test(URL.parse(text)?.protocol ?? "") && URL.parse(text)?.origin === text;
}

const page = { tag: "Page", alwaysOn: true } as const;
const documentation = { tag: "Documentation", alwaysOn: true } as const;

/** The root, the page under /ui/ unless it is disabled, and the API reference with its console. */
export function pageRoutes(services: ManagementServices): readonly Route[] {
  return [
    defineRoute({
      ...page,
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
      query: uiQuery,
      answers: [{ contentType, description: "The file." }],
      handle: (context, { query }) =>
        sendPageFile(context, services.pageFile(name), contentType, security(query.connect ?? [])),
    });
  });
}

function contentTypeOf(name: PageFileName): string {
  if (name.endsWith(".js")) return "text/javascript";
  return name.endsWith(".css") ? "text/css" : "text/html";
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
    "content-type": `${type}; charset=utf-8`,
    ...security,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
  });
}
