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
import type { ErrorCode } from "../errors/error-codes.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { App } from "../http/app.ts";
import { nativeErrorBody } from "../http/errors.ts";
import { ConnectionGate, type ConnectionLimits } from "./connection-gate.ts";

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

/**
 * A response whose headers are sent together with its first frame, as one packet, if that is available immediately;
 * otherwise by themselves, so that a client gets the status even if the first frame takes long.
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

/** Errors of Node's parser other than a malformed request. */
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
 * How much longer an unused connection is kept than one with half a request: the client may send a request just as it is
 * closed, and would take an error for the response.
 */
const UNUSED_MS = 55_000;

/**
 * Answers malformed requests, which never reach the app, with an error of the native API, and closes the connection. For
 * the event `clientError` of an HTTP server. A connection that the client broke is closed without an answer, and so is
 * one that sent nothing, `unusedMs` milliseconds later.
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
  // The client may go on sending what nobody reads.
  socket.end(lines.join("\r\n"), () => socket.destroy());
}

function isUnused(socket: Duplex): boolean {
  return socket instanceof Socket && socket.bytesRead === 0;
}
