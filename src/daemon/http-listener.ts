import { createServer, Server, type ServerResponse } from "node:http";
import { createAdaptorServer, type WebSocketServerLike } from "@hono/node-server";
import { WebSocketServer } from "ws";
import type { App } from "../http/app.ts";
import { JoinedResponse } from "./joined-response.ts";
import { answerUnreadableRequest } from "./unreadable-request.ts";

/** Longer than the idle time of common proxies and clients, so that they close first and no request gets lost. */
const KEEP_ALIVE_MS = 75_000;
/** WebSocket close code "going away". */
const GOING_AWAY = 1001;

export interface ListenerOptions {
  /** Marks every request as coming from the owner's own socket. */
  readonly ipc: boolean;
  /** Largest WebSocket message in bytes. */
  readonly maxMessageBytes: number;
}

/** One server of the app with its WebSockets; knows which answers are under way. */
export class HttpListener {
  readonly server: Server;
  readonly #webSockets: WebSocketServer;
  readonly #answers = new Set<ServerResponse>();
  /** Called when the last answer has ended. */
  readonly #waiting: (() => void)[] = [];

  constructor(app: App, options: ListenerOptions) {
    this.#webSockets = new WebSocketServer({ noServer: true, maxPayload: options.maxMessageBytes });
    const server = createAdaptorServer({
      // The adapter finds its upgrade state in this very object, so it is marked, not copied.
      fetch: (request, env) => app.fetch(request, Object.assign(env, { ipc: options.ipc })),
      overrideGlobalObjects: false,
      // The adapter is made for ws, but its types know nothing of ws's callback after send().
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      websocket: { server: this.#webSockets as unknown as WebSocketServerLike },
      createServer,
      serverOptions: {
        ServerResponse: JoinedResponse,
        keepAliveTimeout: KEEP_ALIVE_MS,
        // Anything else, such as h2c that curl --http2 offers, is to be answered as if it had not asked.
        shouldUpgradeCallback: (request) => request.headers.upgrade?.toLowerCase() === "websocket",
      },
    });
    if (!(server instanceof Server)) throw new Error("the adapter made no HTTP/1.1 server");
    this.server = server;
    server.on("clientError", (error, socket) => {
      // A second head in the middle of an answer would be taken for its text.
      const hasBegun = [...this.#answers].some((answer) => answer.socket === socket && answer.headersSent);
      if (hasBegun) socket.destroy();
      else answerUnreadableRequest(error, socket);
    });
    server.on("request", (_request, response: ServerResponse) => {
      this.#answers.add(response);
      response.once("close", () => this.#ended(response));
    });
  }

  /** Resolves when no answer is under way. */
  async idle(): Promise<void> {
    if (this.#answers.size > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Stops listening and ends what is still open. */
  async close(): Promise<void> {
    for (const socket of this.#webSockets.clients) socket.close(GOING_AWAY, "the daemon is shutting down");
    const ended = this.server.listening
      ? new Promise<void>((resolve) => this.server.close(() => resolve()))
      : Promise.resolve();
    this.server.closeAllConnections();
    for (const socket of this.#webSockets.clients) socket.terminate();
    await ended;
  }

  #ended(response: ServerResponse): void {
    this.#answers.delete(response);
    if (this.#answers.size > 0) return;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
