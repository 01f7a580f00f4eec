import { randomUUID } from "node:crypto";
import {
  createServer,
  type IncomingMessage,
  maxHeaderSize,
  Server,
  ServerResponse,
  STATUS_CODES,
} from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { createAdaptorServer, type WebSocketServerLike } from "@hono/node-server";
import type { Logger } from "pino";
import { WebSocketServer } from "ws";
import { atMostEvery } from "../async/timers.ts";
import type { ErrorCode } from "../errors/error-codes.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { App } from "../http/app.ts";
import { nativeErrorBody } from "../http/errors.ts";
import { ConnectionGate, type ConnectionLimits } from "./connection-gate.ts";

/** Idle timeout. It is longer than that of common proxies and clients, so that they close first and lose no request. */
const KEEP_ALIVE_MS = 75_000;
/** Timeout of a request's headers. */
const HEADERS_MS = 20_000;
/** Timeout of a whole request, enough for the largest body over a slow line. */
const REQUEST_MS = 300_000;
/** Interval of checking these timeouts. */
const CHECK_MS = 5000;
/** WebSocket close code "going away". */
const GOING_AWAY = 1001;

/** Minimum interval of warnings: at the limit there may be thousands of refusals per second. */
const FULL_WARNING_MS = 60_000;

interface ListenerOptions {
  /** True for the IPC socket, which only its owner can open. */
  readonly ipc: boolean;
  /** Maximum size of a WebSocket message in bytes. */
  readonly maxMessageBytes: number;
  readonly connections: ConnectionLimits;
  /** Log for failures that belong to no request. */
  readonly logger: Pick<Logger, "warn">;
}

/** HTTP server of the app with its WebSockets. It tracks the responses in progress. */
export class HttpListener {
  readonly server: Server;
  readonly #webSockets: WebSocketServer;
  readonly #gate: ConnectionGate;
  readonly #answers = new Set<ServerResponse>();

  constructor(app: App, options: ListenerOptions) {
    const { logger } = options;
    const transport = options.ipc ? "the IPC socket" : "TCP";
    const mayWarnFull = atMostEvery(FULL_WARNING_MS);
    this.#gate = new ConnectionGate(options.connections, (connections) => {
      if (mayWarnFull())
        logger.warn({ connections }, `The connections over ${transport} are full; new ones get 503`);
    });
    this.#webSockets = new WebSocketServer({ noServer: true, maxPayload: options.maxMessageBytes });
    const server = createAdaptorServer({
      // The adapter looks up its upgrade state by this object, so it must not be copied.
      fetch: (request, env) =>
        app.fetch(
          request,
          Object.assign(env, { ipc: options.ipc, surplus: this.#gate.isSurplus(env.incoming.socket) }),
        ),
      overrideGlobalObjects: false,
      // The adapter is made for ws, but its types lack the callback of send().
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
    // accept() fails for lack of file descriptors, for example; later connections may succeed.
    const mayWarnAccept = atMostEvery(FULL_WARNING_MS);
    server.on("error", (error) => {
      if (server.listening && mayWarnAccept())
        logger.warn({ err: error }, `Cannot accept a connection over ${transport}`);
    });
    server.on("clientError", (error, socket) => {
      // An error response in the middle of another response would be read as part of its body.
      const isAnswering = [...this.#answers].some((answer) => answer.socket === socket && answer.headersSent);
      if (isAnswering) socket.destroy();
      else answerUnreadableRequest(error, socket);
    });
    server.on("request", ({ socket }, response: ServerResponse) => {
      if (this.#gate.isSurplus(socket)) response.shouldKeepAlive = false;
      this.#gate.begin(socket);
      this.#answers.add(response);
      response.once("close", () => {
        this.#gate.end(socket);
        this.#answers.delete(response);
      });
    });
  }

  /** Resolves when no response is in progress. */
  async idle(): Promise<void> {
    for (const answer of this.#answers)
      await new Promise<void>((resolve) => void answer.once("close", resolve));
  }

  /** Stops listening and closes all connections. */
  async close(): Promise<void> {
    for (const socket of this.#webSockets.clients) socket.close(GOING_AWAY, "the daemon is shutting down");
    const ended = Promise.withResolvers<void>();
    this.server.close(() => ended.resolve());
    this.server.closeAllConnections();
    for (const socket of this.#webSockets.clients) socket.terminate();
    await ended.promise;
  }

  /**
   * Accepts upgrades to a WebSocket only; other requests, such as curl --http2 with h2c, get a normal response.
   * Upgrades are counted here, because the adapter would stop refusing invalid ones if there were another `upgrade`
   * listener.
   */
  #mayUpgrade({ headers, socket }: IncomingMessage): boolean {
    if (headers.upgrade?.toLowerCase() !== "websocket" || this.#gate.isSurplus(socket)) return false;
    this.#gate.begin(socket);
    return true;
  }
}

/**
 * Response that sends its headers and its first frame as one packet if the frame is available immediately; otherwise
 * the headers alone, so that the client gets the status without waiting.
 */
export class JoinedResponse<
  Request extends IncomingMessage = IncomingMessage,
> extends ServerResponse<Request> {
  override flushHeaders(): void {
    const written = this.socket?.bytesWritten;
    setImmediate(() => {
      const isSent = this.writableEnded || this.socket?.bytesWritten !== written;
      if (!isSent) super.flushHeaders();
    });
  }
}

/** Error codes for errors of Node's parser; all others are malformed requests. */
const CODES: ReadonlyMap<unknown, ErrorCode> = new Map<unknown, ErrorCode>([
  ["HPE_HEADER_OVERFLOW", "headers_too_large"],
  ["HPE_CHUNK_EXTENSIONS_OVERFLOW", "payload_too_large"],
  ["ERR_HTTP_REQUEST_TIMEOUT", "request_timeout"],
]);

const MESSAGES: Partial<Record<ErrorCode, string>> = {
  headers_too_large: `The request headers are larger than the limit of ${maxHeaderSize / 1024} KiB.`,
  payload_too_large: "The extensions of the body's chunks are too large.",
  request_timeout: "The request did not arrive in time.",
};

/**
 * Additional time for a connection without any data. The client may send a request while it is closed, and would take
 * an error for the response.
 */
const UNUSED_MS = 55_000;

/**
 * Handles `clientError` of an HTTP server: answers malformed requests, which never reach the app, with an error of the
 * native API and closes the connection. A connection that the client has reset is closed without a response; one
 * without any data is closed after `unusedMs` milliseconds.
 */
export function answerUnreadableRequest(error: Error, socket: Duplex, unusedMs = UNUSED_MS): void {
  const reason: unknown = "code" in error ? error.code : undefined;
  if (reason === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  if (reason === "ERR_HTTP_REQUEST_TIMEOUT" && isUnused(socket)) {
    const timer = setTimeout(() => isUnused(socket) && socket.destroy(), unusedMs);
    socket.once("close", () => clearTimeout(timer));
    return;
  }
  const code = CODES.get(reason) ?? "malformed_request";
  const message = MESSAGES[code] ?? `Malformed HTTP request: ${error.message}.`;
  const failure = new ServiceError(code, message, { cause: error });
  const body = JSON.stringify(nativeErrorBody(failure));
  const lines = [
    `HTTP/1.1 ${failure.status} ${STATUS_CODES[failure.status] ?? ""}`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${randomUUID()}`,
    "connection: close",
    "",
    body,
  ];
  // Destroyed, because the client may continue to send.
  socket.end(lines.join("\r\n"), () => socket.destroy());
}

function isUnused(socket: Duplex): boolean {
  return socket instanceof Socket && socket.bytesRead === 0;
}
