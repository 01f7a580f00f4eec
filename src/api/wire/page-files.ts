import { z } from "zod";

/** Files of the page that a browser caches, to show it offline. */
export const pageListSchema = z.object({
  version: z.string().describe("Changes when one of the files changes."),
  files: z.array(
    z.object({
      path: z.string().describe("Path relative to the scope of the page's service worker."),
      sha256: z.string(),
    }),
  ),
});
export type PageList = z.output<typeof pageListSchema>;

/** Scripts that the page does not need, or only in few browsers. */
const NOT_CACHED = new Set(["daybreak.js", "sw.js", "engine-compat.js"]);

/** True if the page needs a script of the folder /browser/ when it is offline. */
export function isCacheable(script: string): boolean {
  return !NOT_CACHED.has(script);
}

export async function pageList(files: PageList["files"]): Promise<PageList> {
  const sorted = files.toSorted((one, other) => (one.path < other.path ? -1 : 1));
  const text = sorted.map(({ path, sha256 }) => `${sha256} ${path}\n`).join("");
  return { version: await sha256Of(new TextEncoder().encode(text)), files: sorted };
}

/** Returns the SHA-256 in hexadecimal. */
export async function sha256Of(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A file of a page that the daemon serves. */
export interface PageFile {
  readonly content: Uint8Array<ArrayBuffer>;
  /** ETag, including the quotes. */
  readonly etag: string;
}

/** Files of the page by URL path. A fixed table, so that no file name is built from a request. */
export const UI_FILES = {
  "/ui/": "ui/index.html",
  "/ui/page.css": "ui/page.css",
  "/ui/models.css": "ui/models.css",
  "/ui/monitor.css": "ui/monitor.css",
  "/ui/app.css": "ui/app.css",
  "/ui/style.css": "ui/style.css",
  "/ui/manifest.webmanifest": "ui/manifest.webmanifest",
  "/ui/icons/icon.svg": "ui/icons/icon.svg",
  "/ui/icons/icon-180.png": "ui/icons/icon-180.png",
  "/ui/icons/icon-192.png": "ui/icons/icon-192.png",
  "/ui/icons/icon-512.png": "ui/icons/icon-512.png",
  "/ui/icons/maskable-512.png": "ui/icons/maskable-512.png",
} as const;
/** Document that runs tools of a chat; src/ui/tools/tools.ts puts it in a frame without an origin. */
export const FRAME_FILES = { "/ui/tool-frame.html": "ui/tool-frame.html" } as const;
export const EXPERIMENTS_FILES = { "/ui/experiments/": "ui/experiments/index.html" } as const;
export const DOCS_FILES = {
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
