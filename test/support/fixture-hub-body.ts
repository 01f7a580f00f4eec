import type { IncomingMessage, ServerResponse } from "node:http";

/** What a server of the fixture hub does instead of answering well. Several may be combined. */
export interface Fault {
  /** Answers with this status and an empty body. */
  readonly status?: number;
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
  /** Sends so many bytes, then waits for `until`. */
  readonly pause?: { readonly after: number; readonly until: Promise<void> };
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
  if (fault.cutAfter !== undefined) {
    response.write(body, () => response.destroy());
    return;
  }
  response.write(body);
  response.end(fault.append);
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
