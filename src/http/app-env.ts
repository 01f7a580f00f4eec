import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import type { Logger } from "pino";
import type { HeldBodies } from "./input/held-bodies.ts";

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
    heldBodies: HeldBodies;
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
