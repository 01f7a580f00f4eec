import { errors, type Msg, type NatsConnection } from "@nats-io/transport-node";
import { pause } from "../../async/pause.ts";

/**
 * When a request that has no answer is sent again, in milliseconds after the first time. A server says nothing to what comes
 * while a stream has no leader: for a moment after it has been made, for ten seconds after its leader has died.
 */
const AGAIN_MS = [500, 1500, 3000, 5000, 7000, 9000, 11_000, 13_000, 15_000, 17_000];
const DEFAULT_TIMEOUT_MS = 1000;
/** For the answer to what the server has read. */
const ANSWER_MS = 250;

/** A cluster has no leader: for a while after its start, and after its leader has died. */
export const NO_LEADER = 10_008;
/** Bytes. */
const LONGEST_ERROR = 1024;
const decoder = new TextDecoder();

/** From then on, a request may have been sent more than once. */
export const ASKED_ONCE_MS = AGAIN_MS[0] ?? 0;

/** The connection, with requests that are sent again until one of them is answered, within the time that each has. */
export function askingAgain(nats: NatsConnection): NatsConnection {
  const request: NatsConnection["request"] = async (subject, data, options) => {
    const { promise, resolve, reject } = Promise.withResolvers<Msg>();
    const over = new AbortController();
    const startedAt = performance.now();
    const timeout = options?.timeout ?? DEFAULT_TIMEOUT_MS;
    const leftMs = (): number => startedAt + timeout - performance.now();
    let late: NodeJS.Timeout | undefined;
    const ask = async (timeoutMs: number): Promise<void> => {
      const answer = await nats.request(subject, data, { ...options, timeout: timeoutMs });
      if (!saysNoLeader(answer)) resolve(answer);
      // Told if nothing better comes in time.
      else late ??= setTimeout(() => resolve(answer), leftMs());
    };
    const end = (error: unknown): void => {
      if (!late || !(error instanceof errors.TimeoutError)) reject(error);
    };
    const askAgain = async (): Promise<void> => {
      for (const ms of AGAIN_MS.filter((each) => each < timeout)) {
        await pause(Math.max(0, startedAt + ms - performance.now()), over.signal);
        // On a slow line, a second copy would only delay the first, which is still on its way until the server answers this.
        await nats.flush();
        await pause(ANSWER_MS, over.signal);
        if (leftMs() < 1) return;
        ask(leftMs()).catch(end);
      }
    };
    ask(timeout).catch(end);
    // It ends with the request, or with the connection, as the request does.
    askAgain().catch(() => undefined);
    try {
      return await promise;
    } finally {
      over.abort();
      clearTimeout(late);
    }
  };
  return new Proxy(nats, {
    get: (target, key): unknown => (key === "request" ? request : Reflect.get(target, key, target)),
  });
}

/** Whether a server of a cluster answers that nobody leads it now. */
function saysNoLeader({ data }: Msg): boolean {
  return data.byteLength < LONGEST_ERROR && decoder.decode(data).includes(`"err_code":${NO_LEADER},`);
}
