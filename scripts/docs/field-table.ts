import type { z } from "zod";
import { describedFields } from "./described-fields.ts";

/**
 * A section with the fields of a request: which are honored, which are ignored, which are refused. It comes from the
 * schema that the route parses with.
 */
export function fieldTable(heading: string, schema: z.ZodType): string {
  const rows = describedFields(schema)
    .flat()
    .map(({ name, description }) => `| \`${name}\` | ${handling(description)} | ${meaning(description)} |`);
  return `\n### ${heading}\n\n| field | | meaning |\n|---|---|---|\n${rows.join("\n")}\n`;
}

/** The schemas' own words say which fields are ignored or refused. */
const HANDLING = /^(?:Accepted and (ignored)|(Refused))(?:: )?/;

function handling(description: string): string {
  const match = HANDLING.exec(description);
  return match ? (match[1] ?? "refused") : "honored";
}

function meaning(description: string): string {
  return description.replace(HANDLING, "").replace(/^\.$/, "").replaceAll("|", "\\|");
}
