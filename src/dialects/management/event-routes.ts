import { EventQueue } from "../../async/event-queue.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { TimedServiceEvent } from "../../events/service-events.ts";
import { nativeErrorBody } from "../../http/errors/native-error.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { eventSchema } from "./event-schema.ts";
import type { ManagementServices } from "./management-services.ts";
import { sseEvent } from "../../http/streaming/sse-frame.ts";
import { SSE_TYPE, streamResponse, type StreamFormat } from "../../http/streaming/stream-response.ts";

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
