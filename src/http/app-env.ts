import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import type { Logger } from "pino";
import { ServiceError } from "../errors/service-error.ts";

/** The Hono context of every handler. */
export interface AppEnv {
  /** Absent if the app is called without a socket, as in unit tests. */
  Bindings: Partial<HttpBindings> & {
    /** The whole body, where it did not come through a socket. */
    body?: Uint8Array;
    /** True for requests over the IPC socket, which only the daemon's owner can open. */
    ipc?: boolean;
    /** True for a connection beyond the daemon's limit, which is only answered to say so. */
    surplus?: boolean;
    /** Set for a line of a batch, which the daemon itself sends: whose batch it is. */
    batch?: { readonly owner: string };
  };
  Variables: {
    /** Sent back as x-request-id. */
    requestId: string;
    /** Pattern of the path of the route that answers, such as "/api/models/{name}". */
    route?: string;
    /** Code of the error that the request was answered with. */
    errorCode?: string;
    /** What the request asked for and did not get, though it was answered. */
    warnings?: readonly string[];
    /** Carries the request id in each line. Never log prompts, keys or bodies. */
    logger: Logger;
    /** Largest body in bytes; enforced where the body is read. */
    bodyLimit: number;
    /** Counts the bytes of all current bodies; code that reads a body adds to it. */
    heldBodies: BodyMemory;
    /**
     * Counts one more message of this client against the rate limit; throws `rate_limited` beyond it. For messages after the
     * request itself, such as those of a WebSocket.
     */
    countMessage: () => void;
    /** Digest of the API key that the request came with; undefined where none is needed: everything may be seen then. */
    owner: string | undefined;
    /** True for requests from a web page that is neither the daemon's own nor listed in the configuration. */
    isForeignPage: boolean;
    /** True for requests from programs on this machine, which may name its folders. */
    isLocalClient: boolean;
  };
}

export type AppContext = Context<AppEnv>;

/** How many of the largest bodies may be in memory at once; parsed, they take up to four times as much. */
const LARGEST_BODIES = 4;

/** The beginning of each body is not counted, so that normal requests pass when others have used up the limit. */
const UNCOUNTED = 64 * 1024;

/** Limits the bytes of the bodies of all current requests together. */
export class BodyMemory {
  readonly #limit: number;
  #held = 0;

  /** @param bodyLimit largest body in bytes */
  constructor(bodyLimit: number) {
    this.#limit = LARGEST_BODIES * bodyLimit;
  }

  /** Bytes held now, beyond the beginnings. */
  get held(): number {
    return this.#held;
  }

  begin(): HeldBody {
    let own = -UNCOUNTED;
    let isOver = false;
    return {
      add: (bytes) => {
        const before = Math.max(0, own);
        own += bytes;
        const counted = Math.max(0, own) - before;
        if (isOver || counted === 0) return;
        this.#held += counted;
        if (this.#held <= this.#limit) return;
        throw new ServiceError(
          "overloaded",
          "The bodies of all current requests together are too large; try again in a moment.",
        );
      },
      release: () => {
        if (isOver) return;
        isOver = true;
        this.#held -= Math.max(0, own);
      },
    };
  }
}

/** One body, from its first byte to the end of its request. */
interface HeldBody {
  /** @throws ServiceError overloaded when all bodies together are too large */
  add(bytes: number): void;
  /** Safe to call twice. */
  release(): void;
}
