import { createServer, type IncomingMessage, Server, type ServerResponse } from "node:http";
import { createAdaptorServer, type WebSocketServerLike } from "@hono/node-server";
import type { Logger } from "pino";
import { WebSocketServer } from "ws";
import type { App } from "../http/app.ts";
import { ConnectionGate } from "./connection-gate.ts";
import type { ConnectionLimits } from "./connection-limits.ts";
import { JoinedResponse } from "./joined-response.ts";
import { answerUnreadableRequest } from "./unreadable-request.ts";

/** Longer than the idle time of common proxies and clients, so that they close first and no request gets lost. */
const KEEP_ALIVE_MS = 75_000;
/** Headers arrive in one piece, or in a few; a client that takes longer ties up a connection. */
const HEADERS_MS = 20_000;
/** Enough for the largest body over a slow line. */
const REQUEST_MS = 300_000;
/** How often these two are checked. */
const CHECK_MS = 5000;
/** WebSocket close code "going away". */
const GOING_AWAY = 1001;

/** At the connection limit there may be thousands of refusals per second. */
const FULL_WARNING_MS = 60_000;

interface ListenerOptions {
  /** Marks every request as coming from the owner's own socket. */
  readonly ipc: boolean;
  /** Largest WebSocket message in bytes. */
  readonly maxMessageBytes: number;
  readonly connections: ConnectionLimits;
  /** Logs failures of the listener or its connections that do not belong to a request. */
  readonly logger: Pick<Logger, "warn">;
}

/** One HTTP server of the app with its WebSockets; tracks which answers are being sent. */
export class HttpListener {
  readonly server: Server;
  readonly #webSockets: WebSocketServer;
  readonly #gate: ConnectionGate;
  readonly #answers = new Set<ServerResponse>();
  /** Called when the last answer has ended. */
  readonly #waiting: (() => void)[] = [];

  constructor(app: App, options: ListenerOptions) {
    const { logger } = options;
    const where = options.ipc ? "the IPC socket" : "TCP";
    const seldom = atMostEvery(FULL_WARNING_MS);
    this.#gate = new ConnectionGate(options.connections, (connections) => {
      if (seldom()) logger.warn({ connections }, `The connections over ${where} are full; new ones get 503`);
    });
    this.#webSockets = new WebSocketServer({ noServer: true, maxPayload: options.maxMessageBytes });
    const server = createAdaptorServer({
      // The adapter finds its upgrade state in this very object, so it is marked, not copied.
      fetch: (request, env) =>
        app.fetch(
          request,
          Object.assign(env, { ipc: options.ipc, surplus: this.#gate.isSurplus(env.incoming.socket) }),
        ),
      overrideGlobalObjects: false,
      // The adapter is made for ws, but its types know nothing of ws's callback after send().
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      websocket: { server: this.#webSockets as unknown as WebSocketServerLike },
      createServer,
      serverOptions: {
        ServerResponse: JoinedResponse,
        keepAliveTimeout: KEEP_ALIVE_MS,
        headersTimeout: HEADERS_MS,
        requestTimeout: REQUEST_MS,
        connectionsCheckingInterval: CHECK_MS,
        shouldUpgradeCallback: (request) => this.#mayUpgrade(request),
      },
    });
    if (!(server instanceof Server)) throw new Error("the adapter made no HTTP/1.1 server");
    this.server = server;
    server.prependListener("connection", (socket) => this.#gate.enter(socket));
    // A connection could not be accepted, usually for lack of a file descriptor; the next one may be.
    const failing = atMostEvery(FULL_WARNING_MS);
    server.on("error", (error) => {
      if (server.listening && failing())
        logger.warn({ err: error }, `Cannot accept a connection over ${where}`);
    });
    server.on("clientError", (error, socket) => {
      // A second head in the middle of an answer would be read as part of its body.
      const hasBegun = [...this.#answers].some((answer) => answer.socket === socket && answer.headersSent);
      if (hasBegun) socket.destroy();
      else answerUnreadableRequest(error, socket);
    });
    server.on("request", ({ socket }, response: ServerResponse) => {
      if (this.#gate.isSurplus(socket)) response.shouldKeepAlive = false;
      this.#gate.begin(socket);
      this.#answers.add(response);
      response.once("close", () => {
        this.#gate.end(socket);
        this.#ended(response);
      });
    });
  }

  /** Resolves when no answer is being sent. */
  async idle(): Promise<void> {
    if (this.#answers.size > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Stops listening and closes what is still open. */
  async close(): Promise<void> {
    for (const socket of this.#webSockets.clients) socket.close(GOING_AWAY, "the daemon is shutting down");
    const ended = this.server.listening
      ? new Promise<void>((resolve) => this.server.close(() => resolve()))
      : Promise.resolve();
    this.server.closeAllConnections();
    for (const socket of this.#webSockets.clients) socket.terminate();
    await ended;
  }

  /**
   * What asks for anything but a WebSocket, such as h2c that curl --http2 offers, is answered as if it had not asked. An
   * upgrade is counted here because the adapter refuses none while anybody else listens to the event `upgrade`.
   */
  #mayUpgrade({ headers, socket }: IncomingMessage): boolean {
    if (headers.upgrade?.toLowerCase() !== "websocket" || this.#gate.isSurplus(socket)) return false;
    this.#gate.begin(socket);
    return true;
  }

  #ended(response: ServerResponse): void {
    this.#answers.delete(response);
    if (this.#answers.size > 0) return;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

/** True for the first call, and then once per this many milliseconds. */
function atMostEvery(millis: number): () => boolean {
  let next = Number.NEGATIVE_INFINITY;
  return () => {
    const now = performance.now();
    if (now < next) return false;
    next = now + millis;
    return true;
  };
}
