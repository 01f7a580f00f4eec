import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { BrowserScript } from "../dialects/management/browser-routes.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { ServedFile } from "../http/streaming/send-file.ts";

/** The build puts them beside the program's own code, npm ci in a clone beside its sources. */
const PLACES = [new URL("../../browser/", import.meta.url), new URL("../../dist/browser/", import.meta.url)];

/**
 * Reads a script of the engine for browsers.
 * @throws ServiceError internal_error when it has not been built
 */
export function browserScript(name: BrowserScript): ServedFile {
  for (const place of PLACES) {
    let bytes: Uint8Array<ArrayBuffer>;
    try {
      bytes = readFileSync(new URL(name, place));
    } catch {
      continue;
    }
    return {
      size: bytes.length,
      etag: createHash("sha256").update(bytes).digest("hex"),
      read: (start, end) => new Blob([bytes.subarray(start, end + 1)]).stream(),
    };
  }
  throw new ServiceError(
    "internal_error",
    "The engine for browsers has not been built: run npm run build:browser, or install Daybreak again.",
  );
}
