import { ServiceError } from "../../../errors/service-error.ts";
import { JsonReader } from "../../../json/json-reader.ts";
import { httpFailure, type HubFetch } from "./hub-fetch.ts";
import { HubAnswerFailure, HubNetworkFailure } from "./hub-failure.ts";

/** Largest answer that is read: a page of a thousand files has some 400 KB. */
const MAX_JSON_BYTES = 8 * 1024 * 1024;

export interface JsonAnswer {
  readonly body: unknown;
  /** Address of the next page. */
  readonly next: string | undefined;
}

/**
 * Asks the hub for JSON, of bounded size.
 * @throws HubHttpFailure, HubNetworkFailure; HubAnswerFailure when it is too large or no JSON
 */
export async function readJson(
  hub: HubFetch,
  address: string | URL,
  signal: AbortSignal,
): Promise<JsonAnswer> {
  const headers = { accept: "application/json" };
  const { response, fromHub } = await hub.request(address, { headers, signal });
  if (!response.ok) throw await httpFailure(response, fromHub);
  return { body: await parse(response), next: nextPage(response.headers.get("link")) };
}

/** Parses while it arrives, so that neither a large answer nor a deep one holds up the event loop. */
async function parse(response: Response): Promise<unknown> {
  const json = new JsonReader("An answer");
  const decoder = new TextDecoder();
  const reader = (response.body ?? new Blob().stream()).getReader();
  let bytes = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((error: unknown) => {
        throw new HubNetworkFailure("the connection was cut", { cause: error });
      });
      if (done) break;
      bytes += value.length;
      if (bytes > MAX_JSON_BYTES)
        throw new HubAnswerFailure(`an answer is larger than ${MAX_JSON_BYTES / 2 ** 20} MiB`);
      json.write(decoder.decode(value, { stream: true }));
    }
    return end(json);
  } catch (error) {
    await reader.cancel().catch(() => {});
    if (error instanceof SyntaxError) throw new HubAnswerFailure("an answer is not JSON", { cause: error });
    if (error instanceof ServiceError)
      throw new HubAnswerFailure("an answer is nested too deep or has too many values", { cause: error });
    throw error;
  }
}

function end(json: JsonReader): unknown {
  try {
    return json.end();
  } catch (error) {
    // It may have been cut short on its way.
    throw new HubAnswerFailure("an answer breaks off", { cause: error, mayDiffer: true });
  }
}

/** The link to the next page (RFC 8288). */
function nextPage(header: string | null): string | undefined {
  const link = /<(https?:\/\/[^>]+)>;\s*rel="?next"?/.exec(header ?? "")?.[1];
  return link !== undefined && URL.canParse(link) ? link : undefined;
}
