import { readFileSync } from "node:fs";
import { z } from "zod";

const manifestSchema = z.object({ version: z.string() });

/** Version in package.json, two levels above src/daemon and dist/src/daemon. */
export function packageVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return manifestSchema.parse(JSON.parse(text)).version;
}
