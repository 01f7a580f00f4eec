import { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { activitySchema, LOG_LEVELS } from "./activity-schemas.ts";
import type { ManagementServices } from "./management-services.ts";

const querySchema = z.object({
  after: z.coerce
    .number()
    .int()
    .min(0)
    .default(0)
    .describe("Only what is newer: `next` of an earlier answer."),
  level: z.enum(LOG_LEVELS).default("trace").describe("Records of the log from this level on."),
});

/** What has happened: requests, events, and records of the log. */
export function activityRoutes({ activity }: ManagementServices): readonly Route[] {
  return [
    defineRoute({
      method: "GET",
      path: "/api/system/activity",
      tag: "System",
      summary: "Requests, events and log records of late",
      description:
        "The daemon remembers the last few hundred of each in memory, without bodies, keys or headers. Pages of other " +
        "origins get it only if their origin is listed in `http.cors_origins`.",
      query: querySchema,
      answers: [{ description: "What has happened.", schema: activitySchema }],
      alwaysOn: true,
      handle(context, { query }) {
        // A log says more than a model's answer does: who may ask the models is not meant by that to read it.
        if (context.get("isForeignPage")) {
          throw new ServiceError(
            "forbidden_host",
            "Pages of other origins may not read what has happened here. Add this origin to http.cors_origins if it is yours.",
          );
        }
        return context.json(activity.report(query));
      },
    }),
  ];
}
