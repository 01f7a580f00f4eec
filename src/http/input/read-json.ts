import type { IncomingMessage } from "node:http";
import type { MiddlewareHandler } from "hono";
import type { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import { parseJsonBytes } from "../../json/parse-json.ts";
import type { AppContext, AppEnv } from "../app-env.ts";
import { parseInput } from "./common-fields.ts";

/** Maximum time to discard the rest of a refused body. */
const MAX_DISCARD_MS = 1000;

/**
 * Reads, decodes and parses a JSON body, for all routes with one. The limits apply to chunked bodies as well: reading
 * stops at the first byte beyond them.
 * @param whenEmpty value of an empty body; undefined: an empty body is refused
 */
export async function readJson<Schema extends z.ZodType>(
  context: AppContext,
  schema: Schema,
  whenEmpty?: unknown,
): Promise<z.output<Schema>> {
  assertNotCompressed(context.req.raw.headers);
  assertJsonContentType(context.req.raw.headers);
  return await boundedBody(context, async (chunks) =>
    parseInput(schema, await parseJsonBytes(chunks, "The request body", whenEmpty)),
  );
}

/**
 * Streams a request body, within the limits of one body and of all together.
 * @throws ServiceError payload_too_large or overloaded
 */
export async function boundedBody<Result>(
  context: AppContext,
  read: (chunks: AsyncIterable<Uint8Array>) => Promise<Result>,
): Promise<Result> {
  const counted = context.get("bodyMemory").begin();
  const outgoing = context.env?.outgoing;
  // The parsed body stays in memory until the request ends.
  outgoing?.once("close", () => counted.release());
  try {
    const chunks = boundedChunks(bodyOf(context), context.get("bodyLimit"), (bytes) => counted.add(bytes));
    return await drainOnRefusal(context, read(chunks));
  } finally {
    if (!outgoing || outgoing.closed) counted.release();
  }
}

/**
 * Streams a request body that is a file, which goes to the disk and has a separate limit.
 * @throws ServiceError payload_too_large
 */
export async function fileBody<Result>(
  context: AppContext,
  limit: number,
  read: (chunks: AsyncIterable<Uint8Array>) => Promise<Result>,
): Promise<Result> {
  const chunks = boundedChunks(bodyOf(context), limit, () => undefined);
  return await drainOnRefusal(context, thenClose(chunks, read));
}

/**
 * Closes the stream after reading; otherwise {@link discardRest} could not read the rest, and the connection would be
 * cut.
 */
async function thenClose<Result>(
  chunks: AsyncGenerator<Uint8Array>,
  read: (chunks: AsyncIterable<Uint8Array>) => Promise<Result>,
): Promise<Result> {
  try {
    return await read(chunks);
  } finally {
    await chunks.return(undefined);
  }
}

async function drainOnRefusal<Result>({ env }: AppContext, reading: Promise<Result>): Promise<Result> {
  try {
    return await reading;
  } catch (error) {
    if (env?.outgoing?.shouldKeepAlive === false) await discardRest(env.incoming);
    throw error;
  }
}

/**
 * Reads the rest of a refused body for a while. If unread data arrived on a connection that is closed after the
 * response, the system would reset the connection, and the client would lose the response.
 */
async function discardRest(incoming: IncomingMessage | undefined): Promise<void> {
  if (!incoming || incoming.complete || incoming.destroyed) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, MAX_DISCARD_MS);
  incoming.once("end", resolve).once("close", resolve).resume();
  await promise;
  clearTimeout(timer);
}

/**
 * Returns the body as chunks. A body from a socket is read from Node's stream, because converting it to a web stream
 * takes longer than the rest of a small request. Leaving the stream early must not close the connection, which carries
 * the error.
 */
export function bodyOf({ env, req }: AppContext): AsyncIterable<Uint8Array> | Iterable<Uint8Array> {
  if (env?.body) return [env.body];
  return env?.incoming?.iterator({ destroyOnReturn: false }) ?? req.raw.body ?? [];
}

async function* boundedChunks(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  limit: number,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > limit) throw payloadTooLarge(limit);
    onBytes(chunk.byteLength);
    yield chunk;
  }
}

function payloadTooLarge(limit: number): ServiceError {
  return new ServiceError(
    "payload_too_large",
    `The request body is larger than the limit of ${limit} bytes.`,
  );
}

/** Refuses a request with a too large Content-Length, also on routes without a body, except for file uploads. */
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
/** Content type of `curl -d` without a header. */
const CURL_DEFAULT_TYPE = "application/x-www-form-urlencoded";

/** Bearer credentials, which browsers never add by themselves. */
const BEARER = /^bearer /i;

/** @throws ServiceError unsupported_media_type for a compressed body */
export function assertNotCompressed(headers: Headers): void {
  const encoding = headers.get("content-encoding")?.trim().toLowerCase() ?? "";
  if (encoding === "" || encoding === "identity") return;
  throw new ServiceError(
    "unsupported_media_type",
    `The body must not be compressed, but "Content-Encoding: ${encoding.slice(0, 100)}" says that it is.`,
  );
}

/**
 * Refuses a body that is not declared as JSON. Web pages can send bodies of some other types to other origins without a
 * preflight, so requests from browsers must have the JSON type, for which CORS applies. Other clients need no header,
 * so that `curl -d '{…}'` works.
 * @throws ServiceError unsupported_media_type
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
 * Refuses a changing request without a body from a foreign page, unless a preflight has preceded it. Any page may send
 * a POST without a preflight; the JSON type or a bearer token require one, and CORS has allowed it then.
 * @throws ServiceError unsupported_media_type
 */
export function assertPreflighted(headers: Headers, isForeignPage: boolean): void {
  const hadPreflight = JSON_TYPE.test(mediaType(headers)) || BEARER.test(headers.get("authorization") ?? "");
  if (!isForeignPage || hadPreflight) return;
  throw new ServiceError(
    "unsupported_media_type",
    'A page of another origin must send this with "Content-Type: application/json", or its origin must be named in ' +
      "http.cors_origins.",
  );
}

/** Content type without parameters, in lower case; empty without the header. */
export function mediaType(headers: Headers): string {
  return (headers.get("content-type") ?? "").split(";", 1)[0]!.trim().toLowerCase();
}
