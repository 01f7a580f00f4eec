import type { AppContext } from "../app-env.ts";

/** File to serve; its content is constant for an etag. */
export interface ServedFile {
  /** In bytes. */
  readonly size: number;
  /** ETag without quotes. */
  readonly etag: string;
  /** Streams the bytes from `start` up to and including `end`. */
  read(start: number, end: number): ReadableStream<Uint8Array>;
}

/** Single range of bytes by RFC 9110. */
const RANGE = /^bytes=(?:(\d{1,15})-(\d{0,15})|-(\d{1,15}))$/;

/**
 * Responds with a file, the requested range of it, or 304 for a client that has it. A request for several ranges gets
 * the full file, as RFC 9110 allows.
 */
export function sendFile(
  context: AppContext,
  file: ServedFile,
  headers: Readonly<Record<string, string>>,
): Response {
  const etag = `"${file.etag}"`;
  const common = { ...headers, etag, "accept-ranges": "bytes" };
  if (context.req.header("if-none-match") === etag)
    return new Response(null, { status: 304, headers: common });
  const condition = context.req.header("if-range");
  const range =
    condition === undefined || condition === etag
      ? readRange(context.req.header("range"), file.size)
      : undefined;
  if (range === "unsatisfiable") {
    return new Response(null, {
      status: 416,
      headers: { ...headers, "content-range": `bytes */${file.size}` },
    });
  }
  const [start, end] = range ?? [0, file.size - 1];
  const isBodyless = context.req.method === "HEAD" || file.size === 0;
  return new Response(isBodyless ? null : file.read(start, end), {
    status: range ? 206 : 200,
    headers: {
      ...common,
      "content-length": String(end - start + 1),
      ...(range && { "content-range": `bytes ${start}-${end}/${file.size}` }),
    },
  });
}

/** First and last byte of the range; undefined without a range, or for a syntax that is not supported. */
function readRange(
  header: string | undefined,
  size: number,
): readonly [number, number] | "unsatisfiable" | undefined {
  const [, first, last, suffix] = RANGE.exec(header ?? "") ?? [];
  if (suffix !== undefined) {
    const length = Math.min(Number(suffix), size);
    return length === 0 ? "unsatisfiable" : [size - length, size - 1];
  }
  if (first === undefined) return undefined;
  const start = Number(first);
  const end = last ? Math.min(Number(last), size - 1) : size - 1;
  if (last && Number(last) < start) return undefined;
  return start >= size ? "unsatisfiable" : [start, end];
}
