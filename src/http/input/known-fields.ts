import { z } from "zod";

/** A field of a compatible API that changes nothing here: any value is taken. */
export function ignored(why?: string): z.ZodType {
  return z
    .unknown()
    .optional()
    .describe(why ? `Accepted and ignored: ${why}.` : "Accepted and ignored.");
}

/**
 * A field of a compatible API that asks for what the daemon cannot do. Only null is taken, which means the same
 * as leaving it out.
 */
export function refused(why: string): z.ZodType {
  return z
    .null({ error: `is not supported: ${why}` })
    .optional()
    .describe(`Refused: ${why}.`);
}
