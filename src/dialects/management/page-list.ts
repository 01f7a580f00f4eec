import { z } from "zod";

/** Files of the page that a browser keeps, to show it without a server. */
export const pageListSchema = z.object({
  version: z.string().describe("Changes when one of the files does."),
  files: z.array(
    z.object({
      path: z.string().describe("Address, relative to the scope of the page's service worker."),
      sha256: z.string(),
    }),
  ),
});
export type PageList = z.output<typeof pageListSchema>;

/** Scripts that the page has no use for, or not in most browsers. */
const NOT_KEPT = new Set(["daybreak.js", "sw.js", "engine-compat.js"]);

/** Whether the page needs a script of the folder /browser/ to run without a server. */
export function isKept(script: string): boolean {
  return !NOT_KEPT.has(script);
}

export async function pageList(files: PageList["files"]): Promise<PageList> {
  const sorted = files.toSorted((one, other) => (one.path < other.path ? -1 : 1));
  const text = sorted.map(({ path, sha256 }) => `${sha256} ${path}\n`).join("");
  return { version: await sha256Of(new TextEncoder().encode(text)), files: sorted };
}

/** In hexadecimal. */
export async function sha256Of(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
