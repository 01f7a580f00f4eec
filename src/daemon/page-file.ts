import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import type { PageFile, PageFileName } from "../dialects/management/page-files.ts";
import { ServiceError } from "../errors/service-error.ts";

const SOURCES = new URL("../", import.meta.url);

/**
 * Reads a file of the pages that the daemon serves.
 * @throws ServiceError internal_error when this installation lacks it
 */
export function pageFile(name: PageFileName): PageFile {
  try {
    const content = readFileSync(placeOf(name));
    return { content, etag: `"${createHash("sha256").update(content).digest("base64url")}"` };
  } catch (cause) {
    const advice = "A file of the page is missing from this installation. Install Daybreak again.";
    throw new ServiceError("internal_error", advice, { cause });
  }
}

/** In src/ui; the API console's files are in their package, and a build copies them to src/ui. */
function placeOf(name: PageFileName): string | URL {
  const own = new URL(name, SOURCES);
  if (existsSync(own)) return own;
  return createRequire(import.meta.url).resolve(`swagger-ui-dist/${path.basename(name)}`);
}
