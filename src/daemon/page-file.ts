import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { PageFile, PageFileName } from "../dialects/management/page-routes.ts";
import { ServiceError } from "../errors/service-error.ts";

const SOURCES = new URL("../", import.meta.url);

/**
 * Reads a file of the pages that the daemon serves.
 * @throws ServiceError internal_error when this installation lacks it
 */
export function pageFile(name: PageFileName): PageFile {
  try {
    const content = readFileSync(new URL(name, SOURCES));
    return { content, etag: `"${createHash("sha256").update(content).digest("base64url")}"` };
  } catch (cause) {
    throw new ServiceError("internal_error", "A file of the page is missing; install Daybreak again.", {
      cause,
    });
  }
}
