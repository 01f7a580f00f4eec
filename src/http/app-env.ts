import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import type { Logger } from "pino";
import type { HeldBodies } from "./input/held-bodies.ts";

/** What every handler finds in its Hono context. */
export interface AppEnv {
  /** Absent when the app is called without a socket, as unit tests do. */
  Bindings: Partial<HttpBindings> & {
    /** The whole body, where it did not come through a socket. */
    body?: Uint8Array;
    /** True for what came over the IPC socket, which only the owner of the daemon can open. */
    ipc?: boolean;
    /** True for a connection beyond the daemon's limit, which is there to be told so. */
    surplus?: boolean;
  };
  Variables: {
    /** Sent back as x-request-id. */
    requestId: string;
    /** Carries the request id in each line. Never log prompts, keys or bodies. */
    logger: Logger;
    /** Largest body in bytes; enforced where the body is read. */
    bodyLimit: number;
    /** Counts the bytes of all bodies under way; code that reads a body adds to it. */
    heldBodies: HeldBodies;
    /**
     * Counts one more message of this client against the rate limit; throws `rate_limited` beyond it. For what comes
     * after the request itself, such as the messages of a WebSocket.
     */
    countMessage: () => void;
    /** True for a request of a web page that is neither the daemon's own nor named in the configuration. */
    isForeignPage: boolean;
  };
}

export type AppContext = Context<AppEnv>;
