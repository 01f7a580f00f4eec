import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";

/** Faults of the fixture hub's server. Several may be combined. */
export interface Fault {
  /** Answers with this status (200 when there is only a body) and this body (none). */
  readonly status?: number;
  /** Pieces are sent as quickly as they are read. */
  readonly body?: string | Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
  /** Further headers, or others than usual. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Answers with a redirect to this address. */
  readonly redirect?: string;
  /** Cuts the connection after so many bytes of the body, and after the pause. */
  readonly cutAfter?: number;
  /** Ends the body in good order after so many bytes, with a content-length to match. */
  readonly endAfter?: number;
  /** Answers a range request with 200 and the whole file. */
  readonly ignoreRange?: boolean;
  /** Flips the first byte of the body. */
  readonly corrupt?: boolean;
  /** Sends bytes that nobody asked for at the end, without a content-length. */
  readonly append?: Uint8Array;
  /** Sends so many bytes at a time, with so many milliseconds between them. */
  readonly drops?: { readonly bytes: number; readonly everyMs: number };
  /** Sends so many bytes, then waits for `until`. */
  readonly pause?: { readonly after: number; readonly until: Promise<void> };
}

/** Answers as the fault says and not at all as it should. Ends without a word when the client has left. */
export async function sendFault(
  response: ServerResponse,
  { status = 200, headers, body = "" }: Fault,
): Promise<void> {
  response.writeHead(status, { ...headers });
  const pieces = typeof body === "string" ? [Buffer.from(body)] : body;
  await pipeline(Readable.from(pieces), response).catch(() => undefined);
}

/** Sends bytes as a storage server does: ranges, an ETag, and what the fault adds. */
export async function sendBytes(
  request: IncomingMessage,
  response: ServerResponse,
  bytes: Buffer,
  etag: string,
  fault: Fault,
): Promise<void> {
  const range = fault.ignoreRange ? undefined : parseRange(request.headers.range, bytes.length);
  if (range === "unsatisfiable") {
    response.writeHead(416, { "content-range": `bytes */${bytes.length}` }).end();
    return;
  }
  let body = range === undefined ? bytes : bytes.subarray(range.start, range.end + 1);
  if (fault.endAfter !== undefined) body = body.subarray(0, fault.endAfter);
  if (fault.corrupt) body = flipFirst(body);
  const headers: Record<string, string> = { etag: `"${etag}"`, "accept-ranges": "bytes" };
  if (range !== undefined) headers["content-range"] = `bytes ${range.start}-${range.end}/${bytes.length}`;
  if (fault.append === undefined) headers["content-length"] = String(body.length);
  response.writeHead(range === undefined ? 200 : 206, { ...headers, ...fault.headers });
  if (request.method === "HEAD") {
    response.end();
    return;
  }
  if (fault.cutAfter !== undefined) body = body.subarray(0, fault.cutAfter);
  if (fault.pause !== undefined) {
    response.write(body.subarray(0, fault.pause.after));
    await fault.pause.until;
    body = body.subarray(fault.pause.after);
  }
  if (fault.drops !== undefined) {
    await drop(response, body, fault.drops);
    return;
  }
  if (fault.cutAfter !== undefined) {
    response.write(body, () => response.destroy());
    return;
  }
  response.write(body);
  response.end(fault.append);
}

async function drop(
  response: ServerResponse,
  body: Buffer,
  { bytes, everyMs }: NonNullable<Fault["drops"]>,
): Promise<void> {
  for (let at = 0; at < body.length && !response.destroyed; at += bytes) {
    response.write(body.subarray(at, at + bytes));
    await delay(everyMs);
  }
  response.end();
}

function parseRange(
  header: string | undefined,
  size: number,
): { start: number; end: number } | "unsatisfiable" | undefined {
  const match = /^bytes=(\d+)-(\d*)$/.exec(header ?? "");
  if (match === null) return undefined;
  const start = Number(match[1]);
  const end = match[2] === "" ? size - 1 : Math.min(Number(match[2]), size - 1);
  return start > end ? "unsatisfiable" : { start, end };
}

function flipFirst(body: Buffer): Buffer {
  const copy = Buffer.from(body);
  copy[0] = (copy[0] ?? 0) ^ 0xff;
  return copy;
}
