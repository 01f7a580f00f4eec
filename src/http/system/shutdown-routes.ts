import { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import { defineRoute, type Route } from "../route.ts";
import type { Services } from "../services.ts";

/** Ends the daemon for whoever may open its socket; over the network the route does not exist. */
export function shutdownRoutes(services: Services): readonly Route[] {
  return [
    defineRoute({
      method: "POST",
      path: "/api/system/shutdown",
      tag: "System",
      summary: "Drain and end the daemon (IPC endpoint only)",
      description: "Answers at once. Running requests may end, new ones get 503. Over TCP it is 404.",
      answers: [
        { description: "Draining has begun.", schema: z.object({ status: z.literal("shutting_down") }) },
      ],
      alwaysOn: true,
      handle(context) {
        if (context.env?.ipc !== true) {
          throw new ServiceError(
            "route_not_found",
            "There is no such endpoint here, only on the IPC endpoint.",
          );
        }
        services.shutdown();
        return context.json({ status: "shutting_down" });
      },
    }),
  ];
}
