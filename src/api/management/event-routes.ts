import { z } from "zod";
import { EventQueue } from "../../async/event-queue.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { TimedServiceEvent } from "../../events/service-events.ts";
import { nativeErrorBody } from "../../http/errors.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import {
  SSE_TYPE,
  sseEvent,
  type StreamFormat,
  streamResponse,
} from "../../http/streaming/stream-response.ts";
import { activitySchema, eventSchema, LOG_LEVELS } from "./activity-schemas.ts";
import type { ManagementServices } from "./management-services.ts";

/** Events are rare: a client this far behind has stopped reading. */
const MAX_WAITING_EVENTS = 1000;

const eventStream: StreamFormat = {
  contentType: SSE_TYPE,
  heartbeat: ": keep-alive\n\n",
  errorFrame: (error) => sseEvent("error", nativeErrorBody(error)),
};

/** The stream of model events. */
export function eventRoutes(services: ManagementServices): readonly Route[] {
  return [
    defineRoute({
      method: "GET",
      path: "/api/events",
      tag: "System",
      summary: "Stream model events",
      description: "Server-sent events, from now on. A comment every 15 seconds keeps the connection open.",
      answers: [
        {
          contentType: "text/event-stream",
          description: "An event, named after its type.",
          schema: eventSchema,
        },
      ],
      alwaysOn: true,
      handle(context) {
        const ended = AbortSignal.any([context.req.raw.signal, services.draining]);
        return streamResponse(context, eventFrames(services, ended), eventStream);
      },
    }),
  ];
}

async function* eventFrames(
  services: ManagementServices,
  ended: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  const events = new EventQueue<TimedServiceEvent>(MAX_WAITING_EVENTS, () => 1);
  const unsubscribe = services.events.subscribe((event) => {
    if (events.push(event)) return;
    events.clear(new ServiceError("overloaded", "Events were not read fast enough; reconnect."));
  });
  const onEnd = (): void => events.clear();
  if (ended.aborted) onEnd();
  else ended.addEventListener("abort", onEnd, { once: true });
  try {
    yield ": connected\n\n";
    for await (const event of events) yield sseEvent(event.type, event);
  } finally {
    unsubscribe();
    ended.removeEventListener("abort", onEnd);
  }
}

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
