import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import type { Logger } from "pino";
import { ServiceError } from "../errors/service-error.ts";

/** Types of the Hono context in all handlers. */
export interface AppEnv {
  /** Node's request and response; absent if the app is called without a socket, as in unit tests. */
  Bindings: Partial<HttpBindings> & {
    /** Body of a request without a socket. */
    body?: Uint8Array;
    /** True for requests over the IPC socket, which only the daemon's owner can open. */
    ipc?: boolean;
    /** True for a connection beyond the daemon's limit, on which requests are answered with 503. */
    surplus?: boolean;
    /** Owner of the batch, for a request that is a line of a batch. */
    batch?: { readonly owner: string };
  };
  Variables: {
    /** Sent back as x-request-id. */
    requestId: string;
    /** Path pattern of the route, such as "/api/models/{name}". */
    route?: string;
    /** Code of the error response. */
    errorCode?: string;
    /** Warnings about parts of the request that were ignored. */
    warnings?: readonly string[];
    /** Logger with the request id. Never log prompts, keys or bodies. */
    logger: Logger;
    /** Maximum body in bytes; enforced by the code that reads the body. */
    bodyLimit: number;
    /** Memory of all current bodies; code that reads a body adds to it. */
    bodyMemory: BodyMemory;
    /**
     * Counts a message of this client after the request, such as one over a WebSocket, against the rate limit.
     * @throws ServiceError rate_limited
     */
    countMessage: () => void;
    /** Digest of the request's API key; undefined if no key is needed: such a client may see the data of all. */
    owner: string | undefined;
    /** True for requests from a web page that is neither the daemon's own nor listed in http.cors_origins. */
    isForeignPage: boolean;
    /** True for requests from programs on this machine, which may name its folders. */
    isLocalClient: boolean;
  };
}

export type AppContext = Context<AppEnv>;

/** Limit of all bodies together, in bodies of the maximum size. Parsed, they take up to four times as much memory. */
const LARGEST_BODIES = 4;

/** First bytes of each body that do not count, so that small requests pass even at the limit. */
const UNCOUNTED_BYTES = 64 * 1024;

/** Limits the memory of all current request bodies together. */
export class BodyMemory {
  readonly #limit: number;
  #used = 0;

  /** @param bodyLimit maximum body in bytes */
  constructor(bodyLimit: number) {
    this.#limit = LARGEST_BODIES * bodyLimit;
  }

  /** Counted bytes of all current bodies. */
  get used(): number {
    return this.#used;
  }

  begin(): CountedBody {
    let bytesSoFar = -UNCOUNTED_BYTES;
    let isReleased = false;
    return {
      add: (bytes) => {
        const before = Math.max(0, bytesSoFar);
        bytesSoFar += bytes;
        const counted = Math.max(0, bytesSoFar) - before;
        if (isReleased || counted === 0) return;
        this.#used += counted;
        if (this.#used <= this.#limit) return;
        throw new ServiceError(
          "overloaded",
          "The bodies of all current requests together are too large; try again in a moment.",
        );
      },
      release: () => {
        if (isReleased) return;
        isReleased = true;
        this.#used -= Math.max(0, bytesSoFar);
      },
    };
  }
}

/** Body of a request, counted until the request ends. */
interface CountedBody {
  /** Counts received bytes. @throws ServiceError overloaded if all bodies together are too large */
  add(bytes: number): void;
  /** Subtracts the bytes of this body; safe to call twice. */
  release(): void;
}
