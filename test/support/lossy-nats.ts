import type { NatsConnection } from "@nats-io/transport-node";
import { type MockInstance, vi } from "vitest";

/** Loses the first request whose subject begins so, on its way to the server. */
export function loseRequests(nats: NatsConnection, subject: string): MockInstance<NatsConnection["request"]> {
  return lose(nats, subject, false);
}

/** Loses the answer to the first request whose subject begins so. */
export function loseAnswers(nats: NatsConnection, subject: string): MockInstance<NatsConnection["request"]> {
  return lose(nats, subject, true);
}

function lose(
  nats: NatsConnection,
  subject: string,
  arrives: boolean,
): MockInstance<NatsConnection["request"]> {
  const request = nats.request.bind(nats);
  let isLost = false;
  return vi.spyOn(nats, "request").mockImplementation(async (to, ...rest) => {
    if (isLost || !to.startsWith(subject)) return await request(to, ...rest);
    isLost = true;
    if (arrives) await request(to, ...rest);
    return await new Promise(() => undefined);
  });
}
