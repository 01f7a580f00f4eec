import { randomUUID } from "node:crypto";
import { maxHeaderSize, STATUS_CODES } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ErrorCode } from "../errors/error-codes.ts";
import { ServiceError } from "../errors/service-error.ts";
import { nativeErrorBody } from "../http/errors/native-error.ts";

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
