import type { IncomingMessage } from "node:http";
import type { MiddlewareHandler } from "hono";
import type { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import { parseJsonBytes } from "../../json/parse-json.ts";
import type { AppContext, AppEnv } from "../app-env.ts";
import { assertJsonContentType, assertNotCompressed } from "./content-type.ts";
import type { HeldBody } from "./held-bodies.ts";
import { parseInput } from "./parse-input.ts";

/** A client that sends for longer than this may miss the answer that refuses its body. */
const LONGEST_DISCARD_MS = 1000;

/**
 * Reads, decodes and parses the body of a request. The limits hold for chunked bodies too: reading stops at
 * the first byte beyond them. Every route that has a body reads it through this function.
 */
export async function readJson<Schema extends z.ZodType>(
  context: AppContext,
  schema: Schema,
): Promise<z.output<Schema>> {
  assertNotCompressed(context.req.raw.headers);
  assertJsonContentType(context.req.raw.headers);
  const held = context.get("heldBodies").begin();
  const outgoing = context.env?.outgoing;
  // What a body becomes is held for as long as its request is worked on.
  outgoing?.once("close", () => held.release());
  try {
    const pieces = boundedPieces(bodyOf(context), context.get("bodyLimit"), held);
    return parseInput(schema, await parseJsonBytes(pieces, "The request body"));
  } catch (error) {
    if (outgoing?.shouldKeepAlive === false) await discardRest(context.env.incoming);
    throw error;
  } finally {
    if (!outgoing || outgoing.closed) held.release();
  }
}

/**
 * A connection that ends with its answer is closed by the system at once when something arrives that nobody has read,
 * and the answer is lost: so the rest of a body that was refused is read first, for a while.
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
 * Behind a socket the body is read from Node's own stream: to make a web stream of it takes longer than all the rest
 * of a small request. Leaving that stream early must not end the connection, on which the error has yet to be sent.
 */
function bodyOf({ env, req }: AppContext): AsyncIterable<Uint8Array> | Iterable<Uint8Array> {
  if (env?.body) return [env.body];
  return env?.incoming?.iterator({ destroyOnReturn: false }) ?? req.raw.body ?? [];
}

async function* boundedPieces(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  limit: number,
  held: HeldBody,
): AsyncGenerator<Uint8Array, void, undefined> {
  let size = 0;
  for await (const piece of body) {
    size += piece.byteLength;
    if (size > limit) throw payloadTooLarge(limit);
    held.add(piece.byteLength);
    yield piece;
  }
}

function payloadTooLarge(limit: number): ServiceError {
  return new ServiceError(
    "payload_too_large",
    `The request body is larger than the limit of ${limit} bytes.`,
  );
}

/** Refuses a body that says itself that it is too large, on routes that read no body too. */
export function contentLengthLimit(limit: number): MiddlewareHandler<AppEnv> {
  return async (context, next) => {
    if (Number(context.req.header("content-length") ?? 0) > limit) throw payloadTooLarge(limit);
    await next();
  };
}
