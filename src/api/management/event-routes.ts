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
import { activitySchema, eventSchema, LOG_LEVELS } from "../wire/activity.ts";
import type { ManagementServices } from "./management-services.ts";

/** Queue limit per client. Events are rare: a client with so many unread ones has stopped reading. */
const MAX_WAITING_EVENTS = 1000;

const eventStream: StreamFormat = {
  contentType: SSE_TYPE,
  heartbeat: ": keep-alive\n\n",
  errorFrame: (error) => sseEvent("error", nativeErrorBody(error)),
};

/** Route of the event stream. */
export function eventRoutes(services: ManagementServices): readonly Route[] {
  return [
    defineRoute({
      method: "GET",
      path: "/api/events",
      tag: "System",
      summary: "Stream model events",
      description:
        "Server-sent events from the time of the request. A comment every 15 seconds keeps the connection open.",
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
    .describe("Return only newer entries: `next` of an earlier answer."),
  level: z.enum(LOG_LEVELS).default("trace").describe("Minimum level of log records."),
});

/** Route of recent requests, events and log records. */
export function activityRoutes({ activity }: ManagementServices): readonly Route[] {
  return [
    defineRoute({
      method: "GET",
      path: "/api/system/activity",
      tag: "System",
      summary: "List recent requests, events and log records",
      description:
        "The daemon keeps the last few hundred of each in memory, without bodies, keys or headers. Pages of other " +
        "origins have access only if their origin is listed in `http.cors_origins`.",
      query: querySchema,
      answers: [{ description: "The recent activity.", schema: activitySchema }],
      alwaysOn: true,
      handle(context, { query }) {
        // The log reveals more than answers of models do. Permission to use the models does not include it.
        if (context.get("isForeignPage")) {
          throw new ServiceError(
            "forbidden_host",
            "Pages of other origins may not read the daemon's activity. Add this origin to http.cors_origins if it is yours.",
          );
        }
        return context.json(activity.report(query));
      },
    }),
  ];
}
