import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import type { Logger } from "pino";

/** What every handler finds in its Hono context. */
export interface AppEnv {
  /** Absent when the app is called without a socket, as unit tests do. */
  Bindings: Partial<HttpBindings> & {
    /** True for what came over the IPC socket, which only the owner of the daemon can open. */
    ipc?: boolean;
  };
  Variables: {
    /** Sent back as x-request-id. */
    requestId: string;
    /** Carries the request id in each line. Never log prompts, keys or bodies. */
    logger: Logger;
    /** Largest body in bytes; enforced by whoever reads the body. */
    bodyLimit: number;
  };
}

export type AppContext = Context<AppEnv>;
