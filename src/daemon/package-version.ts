import { readFileSync } from "node:fs";
import { z } from "zod";

const manifestSchema = z.object({ version: z.string() });

/** Version of package.json: two folders up from src/daemon and from dist/src/daemon alike. */
export function packageVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return manifestSchema.parse(JSON.parse(text)).version;
}
