import type { AppContext } from "../app-env.ts";

/** A file that does not change while its tag stays the same. */
export interface ServedFile {
  /** In bytes. */
  readonly size: number;
  /** Without its quotes. */
  readonly etag: string;
  /** Its bytes from `start` up to and including `end`. */
  read(start: number, end: number): ReadableStream<Uint8Array>;
}

/** One range of bytes, as RFC 9110 writes it. */
const RANGE = /^bytes=(?:(\d{1,15})-(\d{0,15})|-(\d{1,15}))$/;

/**
 * Answers with a file: the whole of it, the one range that the request asks for, or 304 for a client that has it.
 * Several ranges in one request are answered with the whole file, as RFC 9110 allows.
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

/** First and last byte; undefined where no range is asked for, or one that is not understood. */
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
