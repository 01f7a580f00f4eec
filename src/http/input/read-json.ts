import type { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import type { AppContext } from "../app-env.ts";
import { assertJsonContentType, assertNotCompressed } from "./content-type.ts";
import { parseInput } from "./parse-input.ts";

/**
 * Reads, decodes and parses the body of a request. The limit holds for chunked bodies too: reading stops at
 * the first byte beyond it. Every route that has a body reads it through this function.
 */
export async function readJson<Schema extends z.ZodType>(
  context: AppContext,
  schema: Schema,
): Promise<z.output<Schema>> {
  assertNotCompressed(context.req.raw.headers);
  assertJsonContentType(context.req.raw.headers);
  const bytes = await readBody(bodyOf(context), context.get("bodyLimit"));
  return parseInput(schema, parseJson(bytes));
}

/**
 * Behind a socket the body is read from Node's own stream: to make a web stream of it takes longer than all the rest
 * of a small request. Leaving that stream early must not end the connection, on which the error has yet to be sent.
 */
function bodyOf({ env, req }: AppContext): AsyncIterable<Uint8Array> | Iterable<Uint8Array> {
  return env?.incoming?.iterator({ destroyOnReturn: false }) ?? req.raw.body ?? [];
}

async function readBody(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  limit: number,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > limit) throw payloadTooLarge(limit);
    chunks.push(chunk);
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size);
}

export function payloadTooLarge(limit: number): ServiceError {
  return new ServiceError(
    "payload_too_large",
    `The request body is larger than the limit of ${limit} bytes.`,
  );
}

function parseJson(bytes: Uint8Array): unknown {
  if (bytes.byteLength === 0) throw new ServiceError("invalid_json", "The request body is empty.");
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as unknown;
  } catch (cause) {
    // The engine's own message quotes the body, which may hold a prompt.
    throw new ServiceError("invalid_json", "The request body is not valid JSON in UTF-8.", { cause });
  }
}
