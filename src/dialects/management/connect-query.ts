import { z } from "zod";
import { isOrigin, MAX_SERVERS, serversOf } from "./page-policy.ts";

/** The query of what the page loads that asks servers. */
export const connectQuery = z.object({
  connect: z
    .string()
    .transform(serversOf)
    .pipe(
      z
        .array(
          z.string().refine(isOrigin, "must be origins such as http://127.0.0.1:8081, separated by spaces"),
        )
        .max(MAX_SERVERS),
    )
    .optional()
    .describe(
      "Origins that the page may connect to besides its own daemon; the page adds those that its user names.",
    ),
});
