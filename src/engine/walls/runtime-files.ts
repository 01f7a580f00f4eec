import { existsSync } from "node:fs";
import path from "node:path";
import { z } from "zod";

/** Where the loader looks for libraries. */
const LOADER_CACHE = "/etc/ld.so.cache";

const reportSchema = z.object({ sharedObjects: z.array(z.string()) });

/** Files without which this very program could not have been started: its libraries, under the names it knows. */
export function runtimeFiles(): string[] {
  // Else it looks up the names of all addresses.
  Object.assign(process.report, { excludeNetwork: true });
  const { sharedObjects } = reportSchema.parse(process.report.getReport());
  return [...sharedObjects, LOADER_CACHE].filter((file) => path.isAbsolute(file) && existsSync(file));
}
