import type { IncomingMessage } from "node:http";
import type { MiddlewareHandler } from "hono";
import type { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import { parseJsonBytes } from "../../json/parse-json.ts";
import type { AppContext, AppEnv } from "../app-env.ts";
import { parseInput } from "./common-fields.ts";

/** A client that keeps sending for longer may miss the error response. */
const LONGEST_DISCARD_MS = 1000;

/**
 * Reads, decodes and parses the body of a request. The limits apply to chunked bodies, too: reading stops at the first byte
 * beyond them. Every route with a JSON body uses this function.
 * @param whenEmpty stands for a body that is empty; undefined: it is refused
 */
export async function readJson<Schema extends z.ZodType>(
  context: AppContext,
  schema: Schema,
  whenEmpty?: unknown,
): Promise<z.output<Schema>> {
  assertNotCompressed(context.req.raw.headers);
  assertJsonContentType(context.req.raw.headers);
  return await boundedBody(context, async (pieces) =>
    parseInput(schema, await parseJsonBytes(pieces, "The request body", whenEmpty)),
  );
}

/**
 * Reads the body of a request piece by piece, within the limits of one body and of all together.
 * @throws ServiceError payload_too_large or overloaded
 */
export async function boundedBody<Result>(
  context: AppContext,
  read: (pieces: AsyncIterable<Uint8Array>) => Promise<Result>,
): Promise<Result> {
  const held = context.get("heldBodies").begin();
  const outgoing = context.env?.outgoing;
  // The parsed body is in memory until the request has ended.
  outgoing?.once("close", () => held.release());
  try {
    const pieces = boundedPieces(bodyOf(context), context.get("bodyLimit"), (bytes) => held.add(bytes));
    return await untilRefused(context, read(pieces));
  } finally {
    if (!outgoing || outgoing.closed) held.release();
  }
}

/**
 * The same for a body that is a file and goes to the disk, with a limit of its own.
 * @throws ServiceError payload_too_large
 */
export async function fileBody<Result>(
  context: AppContext,
  limit: number,
  read: (pieces: AsyncIterable<Uint8Array>) => Promise<Result>,
): Promise<Result> {
  const pieces = boundedPieces(bodyOf(context), limit, () => undefined);
  return await untilRefused(context, andNoMore(pieces, read));
}

/** What is left of a refused body is not discarded while somebody may still read it, and its connection would be cut. */
async function andNoMore<Result>(
  pieces: AsyncGenerator<Uint8Array>,
  read: (pieces: AsyncIterable<Uint8Array>) => Promise<Result>,
): Promise<Result> {
  try {
    return await read(pieces);
  } finally {
    await pieces.return(undefined);
  }
}

async function untilRefused<Result>({ env }: AppContext, reading: Promise<Result>): Promise<Result> {
  try {
    return await reading;
  } catch (error) {
    if (env?.outgoing?.shouldKeepAlive === false) await discardRest(env.incoming);
    throw error;
  }
}

/**
 * If unread data arrives on a connection that is closed after the response, the system resets it, and the response is lost.
 * So the rest of a refused body is read first, for a while.
 */
async function discardRest(incoming: IncomingMessage | undefined): Promise<void> {
  if (!incoming || incoming.complete || incoming.destroyed) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, LONGEST_DISCARD_MS);
  incoming.once("end", resolve).once("close", resolve).resume();
  await promise;
  clearTimeout(timer);
}

/**
 * Bodies from a socket are read from Node's own stream, because converting it to a web stream takes longer than the rest of
 * a small request. Leaving the stream early must not close the connection, which still has to carry the error.
 */
export function bodyOf({ env, req }: AppContext): AsyncIterable<Uint8Array> | Iterable<Uint8Array> {
  if (env?.body) return [env.body];
  return env?.incoming?.iterator({ destroyOnReturn: false }) ?? req.raw.body ?? [];
}

async function* boundedPieces(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  limit: number,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  let size = 0;
  for await (const piece of body) {
    size += piece.byteLength;
    if (size > limit) throw payloadTooLarge(limit);
    onBytes(piece.byteLength);
    yield piece;
  }
}

function payloadTooLarge(limit: number): ServiceError {
  return new ServiceError(
    "payload_too_large",
    `The request body is larger than the limit of ${limit} bytes.`,
  );
}

/** Refuses a body whose declared length is too large, also on routes without a body, but not where it is a file. */
export function contentLengthLimit(
  limit: number,
  takesFile: (path: string) => boolean,
): MiddlewareHandler<AppEnv> {
  return async (context, next) => {
    const length = Number(context.req.header("content-length") ?? 0);
    if (length > limit && !takesFile(context.req.path)) throw payloadTooLarge(limit);
    await next();
  };
}

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json$/;
/** What `curl -d` sends when no header is given. */
const CURL_DEFAULT_TYPE = "application/x-www-form-urlencoded";

/** Browsers add credentials of other schemes by themselves. */
const BEARER = /^bearer /i;

/** Throws `unsupported_media_type` for a compressed body, which is not decompressed. */
export function assertNotCompressed(headers: Headers): void {
  const encoding = headers.get("content-encoding")?.trim().toLowerCase() ?? "";
  if (encoding === "" || encoding === "identity") return;
  throw new ServiceError(
    "unsupported_media_type",
    `The body must not be compressed, but "Content-Encoding: ${encoding.slice(0, 100)}" says that it is.`,
  );
}

/**
 * Throws `unsupported_media_type` for a body that is not declared as JSON.
 *
 * Pages can send bodies of some other types across origins without a preflight, so requests from a browser (with Origin)
 * must be declared as JSON: then CORS decides. Other clients need no header, so that `curl -d '{…}'` works.
 */
function assertJsonContentType(headers: Headers): void {
  const type = mediaType(headers);
  if (JSON_TYPE.test(type)) return;
  const fromPage = headers.has("origin") || headers.has("sec-fetch-site");
  if (!fromPage && (type === "" || type === CURL_DEFAULT_TYPE)) return;
  throw new ServiceError(
    "unsupported_media_type",
    `The body must be JSON with "Content-Type: application/json"${type === "" ? "" : `, not "${type.slice(0, 100)}"`}.`,
  );
}

/**
 * Throws `unsupported_media_type` for a request without a body from a foreign page that would change something. Any page
 * may send a POST without a preflight; if it is declared as JSON or bears a token there was one, and CORS has decided.
 */
export function assertPreflighted(headers: Headers, isForeignPage: boolean): void {
  const isAsked = JSON_TYPE.test(mediaType(headers)) || BEARER.test(headers.get("authorization") ?? "");
  if (!isForeignPage || isAsked) return;
  throw new ServiceError(
    "unsupported_media_type",
    'A page of another origin must send this with "Content-Type: application/json", or its origin must be named in ' +
      "http.cors_origins.",
  );
}

/** The type of the body, without parameters, in lower case; empty if it is not stated. */
export function mediaType(headers: Headers): string {
  return (headers.get("content-type") ?? "").split(";", 1)[0]!.trim().toLowerCase();
}
