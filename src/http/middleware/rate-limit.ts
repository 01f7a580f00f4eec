import type { MiddlewareHandler } from "hono";
import { ServiceError } from "../../errors/service-error.ts";
import type { AppEnv } from "../app-env.ts";
import { clientOf } from "../client-address.ts";

const MINUTE_MS = 60_000;
/** Number of addresses above which full buckets are dropped, since a new bucket is full as well. */
const MAX_TRACKED_ADDRESSES = 10_000;

interface Bucket {
  tokens: number;
  /** Time of performance.now(). */
  updatedAt: number;
}

/** Token bucket per client address with the requests of a minute. */
class RateLimiter {
  readonly #perMinute: number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(perMinute: number) {
    this.#perMinute = perMinute;
  }

  /** Returns 0 if the request may pass, otherwise the seconds to wait. */
  take(address: string): number {
    const now = performance.now();
    if (this.#buckets.size >= MAX_TRACKED_ADDRESSES) this.#forgetFull(now);
    const bucket = this.#buckets.get(address) ?? { tokens: this.#perMinute, updatedAt: now };
    const tokens = this.#refilled(bucket, now);
    const allowed = tokens >= 1;
    this.#buckets.set(address, { tokens: allowed ? tokens - 1 : tokens, updatedAt: now });
    return allowed ? 0 : ((1 - tokens) * MINUTE_MS) / this.#perMinute / 1000;
  }

  #refilled(bucket: Bucket, now: number): number {
    const gained = ((now - bucket.updatedAt) / MINUTE_MS) * this.#perMinute;
    return Math.min(this.#perMinute, bucket.tokens + gained);
  }

  #forgetFull(now: number): void {
    for (const [address, bucket] of this.#buckets) {
      if (this.#refilled(bucket, now) >= this.#perMinute) this.#buckets.delete(address);
    }
    if (this.#buckets.size >= MAX_TRACKED_ADDRESSES) this.#buckets.clear();
  }
}

/**
 * Answers 429 with Retry-After beyond the limit. Requests and WebSocket messages count, except for /health, the IPC
 * socket and lines of batches; 0 means no limit.
 */
export function rateLimit(perMinute: number): MiddlewareHandler<AppEnv> {
  const limiter = new RateLimiter(perMinute);
  return async (context, next) => {
    const isCounted =
      perMinute > 0 && context.env?.ipc !== true && !context.env?.batch && context.req.path !== "/health";
    const client = clientOf(context.env?.incoming?.socket.remoteAddress);
    const count = (): void => {
      const waitSecs = isCounted ? limiter.take(client) : 0;
      if (waitSecs === 0) return;
      throw new ServiceError(
        "rate_limited",
        `More than ${perMinute} requests or messages a minute from this address.`,
        { retryAfterSecs: Math.ceil(waitSecs) },
      );
    };
    context.set("countMessage", count);
    count();
    await next();
  };
}

/** Retry-After of surplus connections. */
const RETRY_AFTER_SECS = 2;

/** Answers 503 with Retry-After on connections beyond the limit, except for /health. */
export function surplusConnection(): MiddlewareHandler<AppEnv> {
  return async (context, next) => {
    if (context.env?.surplus === true && context.req.path !== "/health") {
      throw new ServiceError(
        "overloaded",
        "All connections that the daemon keeps are in use. Close those that are not needed, or try again later.",
        { retryAfterSecs: RETRY_AFTER_SECS },
      );
    }
    await next();
  };
}
