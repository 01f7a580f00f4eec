import { setTimeout as sleep } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/transport-node";

/**
 * When a request that has no answer is sent again, in milliseconds after the first time. A server says nothing to what comes
 * while a stream has no leader: for a moment after it has been made, for ten seconds after its leader has died.
 */
const AGAIN_MS = [500, 1500, 3500, 6500, 9500];
const DEFAULT_TIMEOUT_MS = 1000;
/** For the answer to what the server has read. */
const ANSWER_MS = 250;

/** From then on, a request may have been sent more than once. */
export const ASKED_ONCE_MS = AGAIN_MS[0] ?? 0;

/** The connection, with requests that are sent again until one of them is answered, within the time that each has. */
export function askingAgain(nats: NatsConnection): NatsConnection {
  const request: NatsConnection["request"] = async (subject, data, options) =>
    await new Promise((resolve, reject) => {
      const timeout = options?.timeout ?? DEFAULT_TIMEOUT_MS;
      const deadline = performance.now() + timeout;
      let isOver = false;
      const ask = (leftMs: number): void => {
        nats
          .request(subject, data, { ...options, timeout: leftMs })
          .then(resolve, reject)
          .finally(() => {
            isOver = true;
            timers.forEach(clearTimeout);
          });
      };
      const askAgain = async (): Promise<void> => {
        // On a slow line, a second copy would only delay the first, which is still on its way until the server answers this.
        await nats.flush();
        await sleep(ANSWER_MS, undefined, { ref: false });
        const leftMs = deadline - performance.now();
        if (!isOver && leftMs >= 1) ask(leftMs);
      };
      const timers = AGAIN_MS.filter((ms) => ms < timeout).map((ms) =>
        // Where the connection is lost, the first request fails by itself.
        setTimeout(() => void askAgain().catch(() => undefined), ms),
      );
      ask(timeout);
    });
  return new Proxy(nats, {
    get: (target, key): unknown => (key === "request" ? request : Reflect.get(target, key, target)),
  });
}
