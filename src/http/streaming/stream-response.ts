import { nextTimeSlice } from "../../async/timers.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { AppContext } from "../app-env.ts";

/** Interval of heartbeats: proxies close idle connections after 60 s. */
const HEARTBEAT_MS = 15_000;

/** Format of an API's streams. */
export interface StreamFormat {
  readonly contentType: string;
  /** Last frame of a stream that fails after its start. */
  errorFrame(error: ServiceError, requestId: string): string;
  /** Frame without content, sent during pauses; absent: none. */
  readonly heartbeat?: string;
  readonly heartbeatMs?: number;
}

export const NDJSON_TYPE = "application/x-ndjson";
export const SSE_TYPE = "text/event-stream; charset=utf-8";

/**
 * Streams frames as fast as the client reads. If the client disconnects, the iterator is closed, and
 * `context.req.raw.signal` aborts, by which the caller must cancel its work. An error of the iterator becomes the last
 * frame.
 */
export function streamResponse(
  context: AppContext,
  frames: AsyncIterable<string>,
  format: StreamFormat,
): Response {
  // Nothing reads or cancels the body of a response to HEAD.
  const head = context.req.raw.method === "HEAD";
  return new Response(head ? null : frameStream(context, frames[Symbol.asyncIterator](), format), {
    headers: {
      "content-type": format.contentType,
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
      // Without this header the server adapter delays the first frames to compute a length.
      ...(!head && { "transfer-encoding": "chunked" }),
    },
  });
}

function frameStream(
  context: AppContext,
  iterator: AsyncIterator<string>,
  format: StreamFormat,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let pending: Promise<IteratorResult<string>> | undefined;
  const source: UnderlyingDefaultSource<Uint8Array> = {
    async pull(controller) {
      pending ??= iterator.next();
      try {
        const result = await nextOrHeartbeat(pending, format);
        if (result === undefined) {
          controller.enqueue(encoder.encode(format.heartbeat));
          return;
        }
        pending = undefined;
        if (result.done) controller.close();
        else controller.enqueue(encoder.encode(result.value));
      } catch (cause) {
        if (context.req.raw.signal.aborted) {
          controller.error(cause);
          return;
        }
        const error = ServiceError.from(cause);
        if (error.status >= 500) context.get("logger").error({ err: error }, "stream failed");
        controller.enqueue(encoder.encode(format.errorFrame(error, context.get("requestId"))));
        controller.close();
      }
    },
    async cancel() {
      // Not awaited: a generator that waits for the engine returns only when its signal aborts.
      iterator.return?.().catch(() => undefined);
    },
  };
  return new ReadableStream(source);
}

/** Undefined if a heartbeat is due before the next frame. */
async function nextOrHeartbeat(
  pending: Promise<IteratorResult<string>>,
  format: StreamFormat,
): Promise<IteratorResult<string> | undefined> {
  if (format.heartbeat === undefined) return await pending;
  let timer: NodeJS.Timeout | undefined;
  const due = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, format.heartbeatMs ?? HEARTBEAT_MS, undefined);
  });
  try {
    return await Promise.race([pending, due]);
  } finally {
    clearTimeout(timer);
  }
}

/** Server-sent event without a name, as in OpenAI's chat completions. */
export function sseData(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

/** Server-sent event with a name. */
export function sseEvent(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Characters written before yielding to the event loop, about a millisecond of numbers. */
const CHARACTERS_PER_SLICE = 64 * 1024;

const ENCODER = new TextEncoder();

/**
 * JSON response with potentially long arrays, such as vectors. It is serialized in slices that yield to the event loop,
 * as fast as the client reads; a short one at once, with its length. The text is that of JSON.stringify.
 * @param value array, or object with arrays as fields; nested arrays are not split
 */
export async function longJson(value: object): Promise<Response> {
  const headers = { "content-type": "application/json" };
  const texts = jsonChunks(value);
  let next = await texts.next();
  if (next.done) return new Response(next.value, { headers });
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      controller.enqueue(ENCODER.encode(next.value));
      if (next.done) controller.close();
      else next = await texts.next();
    },
    async cancel() {
      await texts.return("");
    },
  });
  return new Response(body, { headers });
}

/** Serializes a value in chunks; the last one is the generator's return value. */
async function* jsonChunks(value: object): AsyncGenerator<string, string> {
  if (Array.isArray(value)) return yield* arrayChunks("", value);
  let text = "{";
  let comma = "";
  for (const [name, field] of Object.entries(value)) {
    if (field === undefined) continue;
    text += `${comma}${JSON.stringify(name)}:`;
    comma = ",";
    if (Array.isArray(field)) text = yield* arrayChunks(text, field);
    else text += JSON.stringify(field);
  }
  return `${text}}`;
}

async function* arrayChunks(before: string, elements: readonly unknown[]): AsyncGenerator<string, string> {
  let text = `${before}[`;
  for (const [at, element] of elements.entries()) {
    text += `${at > 0 ? "," : ""}${JSON.stringify(element)}`;
    if (text.length < CHARACTERS_PER_SLICE) continue;
    yield text;
    text = "";
    await nextTimeSlice();
  }
  return `${text}]`;
}
