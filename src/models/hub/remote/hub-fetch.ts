import { reasonOf, ServiceError } from "../../../errors/service-error.ts";
import { isRecord, tryJson } from "../../../json/json-values.ts";
import { HubAnswerFailure, HubHttpFailure, HubNetworkFailure } from "./hub-error.ts";

/** Maximum redirects; the hub redirects once or twice, and browsers stop at 20. */
const MAX_REDIRECTS = 10;

/** Maximum characters of an error body that are read for its message. */
const MAX_ERROR_TEXT = 2000;
const ERROR_TEXT_TIMEOUT_MS = 1000;

/** Maximum characters of the hub's message in an error for the client. */
const MAX_QUOTED = 300;

/** Error codes of connections to a server that cannot be authenticated or does not speak TLS. */
const UNTRUSTED_CODE =
  /^(?:CERT_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_|ERR_TLS_|ERR_SSL_|HOSTNAME_|INVALID_|EPROTO)/;

/** Error codes of connections that could not be made. */
const CONNECT_ERROR_CODES = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EAI_FAIL",
  "ENETUNREACH",
  "EHOSTUNREACH",
  "ENETDOWN",
  "ETIMEDOUT",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** Message of fetch() for a blocked port, such as 6000 (Fetch standard, "port blocking"). */
const BLOCKED_PORT = "bad port";

const REDIRECT_STATUS = new Set([301, 302, 303, 307, 308]);

/** Headers with credentials, which are not forwarded to another origin. */
const CREDENTIAL_HEADERS = ["authorization", "cookie", "proxy-authorization"];

interface HubFetchOptions {
  readonly hubUrl: string;
  readonly token: string | undefined;
  readonly fetch: typeof fetch;
}

interface HubAnswer {
  readonly response: Response;
  /** True if the answer is from the hub itself, not from a server it redirected to. */
  readonly fromHub: boolean;
  /** X-Linked-Etag of the hub's own answer: the blob's digest, which a storage server does not send. */
  readonly linkedEtag: string | undefined;
}

/**
 * Sends all requests to the hub, and alone knows the token. The token is only sent to the origin of the configured hub,
 * whatever address a listing or redirect names, and never over plain HTTP if the hub is on HTTPS.
 */
export class HubFetch {
  /** Address of the hub, without a slash at its end. */
  readonly url: string;
  readonly #hub: URL;
  readonly #token: string | undefined;
  readonly #fetch: typeof fetch;

  constructor(options: HubFetchOptions) {
    this.url = options.hubUrl.replace(/\/+$/, "");
    this.#hub = new URL(options.hubUrl);
    this.#token = options.token;
    this.#fetch = options.fetch;
  }

  get hasToken(): boolean {
    return this.#token !== undefined;
  }

  /**
   * Follows redirects and returns the last answer.
   * @throws HubNetworkFailure without an answer; HubAnswerFailure for invalid redirects; ServiceError hub_access_denied
   *   for a malformed token; the signal's reason when it aborts
   */
  async request(address: string | URL, init: RequestInit = {}): Promise<HubAnswer> {
    let url = new URL(address);
    const headers = new Headers(init.headers);
    let linkedEtag: string | undefined;
    const seen = new Set<string>();
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const response = await this.#send(url, headers, init);
      const fromHub = url.origin === this.#hub.origin;
      if (fromHub) linkedEtag ??= unquoteEtag(response.headers.get("x-linked-etag"));
      const location = response.headers.get("location");
      if (!REDIRECT_STATUS.has(response.status) || location === null)
        return { response, fromHub, linkedEtag };
      await closeBody(response);
      const next = parseUrl(location, url);
      seen.add(url.href);
      if (seen.has(next.href)) throw new HubAnswerFailure("it redirects in a loop");
      if (next.origin !== url.origin) for (const name of CREDENTIAL_HEADERS) headers.delete(name);
      url = next;
    }
    throw new HubAnswerFailure(`it redirects more than ${MAX_REDIRECTS} times`);
  }

  /** Returns a fetch function for the hub's client library. It throws answers of the hub with an error status. */
  asFetch(signal: AbortSignal): typeof fetch {
    return async (input, init) => {
      const address = typeof input === "string" || input instanceof URL ? input : input.url;
      const { response, fromHub } = await this.request(address, { ...init, signal });
      // Errors of storage servers are left to the library, which renews signed URLs.
      if (fromHub && !response.ok) throw await httpFailure(response, true);
      return response;
    };
  }

  async #send(url: URL, headers: Headers, init: RequestInit): Promise<Response> {
    if (url.protocol !== "https:" && url.protocol !== this.#hub.protocol)
      throw new HubAnswerFailure(`it redirects from ${this.#hub.protocol} to ${url.protocol}`);
    const sent = new Headers(headers);
    if (url.origin === this.#hub.origin && this.#token !== undefined)
      sent.set("authorization", `Bearer ${validToken(this.#token)}`);
    try {
      return await this.#fetch(url, { ...init, headers: sent, redirect: "manual" });
    } catch (error) {
      init.signal?.throwIfAborted();
      throw networkFailure(error);
    }
  }
}

/** Checks the token here because an error of Headers would quote it. */
function validToken(token: string): string {
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new ServiceError(
    "hub_access_denied",
    "HUB_TOKEN contains characters that an access token cannot have.",
  );
}

/** Converts an answer with an error status to a failure; reads the start of its body. */
export async function httpFailure(response: Response, fromHub: boolean): Promise<HubHttpFailure> {
  const hubCode = response.headers.get("x-error-code") ?? undefined;
  const message = quotable(response.headers.get("x-error-message") ?? (await errorText(response)));
  return new HubHttpFailure({
    status: response.status,
    hubCode,
    fromHub,
    retryAfterSecs: parseRetryAfter(response.headers.get("retry-after")),
    message: message === "" ? `status ${response.status}` : `status ${response.status}: ${message}`,
  });
}

async function errorText(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  if (reader === undefined) return "";
  const decoder = new TextDecoder();
  let text = "";
  const timeout = setTimeout(() => void reader.cancel().catch(() => {}), ERROR_TEXT_TIMEOUT_MS);
  try {
    while (text.length < MAX_ERROR_TEXT) {
      const { done, value } = await reader.read();
      if (done) break;
      text += decoder.decode(value, { stream: true });
    }
    await reader.cancel();
  } catch {
    return "";
  } finally {
    clearTimeout(timeout);
  }
  return messageOf(text);
}

/** Returns one line of bounded length, without control characters. */
function quotable(text: string): string {
  return text
    .slice(0, MAX_QUOTED)
    .replaceAll(/\p{Cc}+/gu, " ")
    .trim();
}

/** Returns the message in {"error": "…"}; empty for others, such as HTML pages of proxies. */
function messageOf(text: string): string {
  const body = tryJson(text);
  return isRecord(body) && typeof body["error"] === "string" ? body["error"] : "";
}

/** Returns the seconds in either form of Retry-After (RFC 9110, 10.2.3). */
function parseRetryAfter(value: string | null): number | undefined {
  if (value === null) return undefined;
  if (/^\d+$/.test(value)) return Number(value);
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, Math.ceil((date - Date.now()) / 1000));
}

/** Returns an ETag without its quotes and `W/` prefix. */
export function unquoteEtag(value: string | null): string | undefined {
  return value === null ? undefined : value.replace(/^W\//, "").replaceAll('"', "");
}

function parseUrl(location: string, base: URL): URL {
  const url = URL.parse(location, base);
  if (url === null) throw new HubAnswerFailure("it redirects to something that is not an address");
  return url;
}

/** Reads a stream. Leaving the loop closes it; a disconnection becomes a HubNetworkFailure. */
export async function* readStream(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    // Closed below, because a failure to close is none of the download.
    yield* stream.values({ preventCancel: true });
  } catch (error) {
    if (error instanceof HubNetworkFailure) throw error;
    throw new HubNetworkFailure("the connection was cut", { cause: error });
  } finally {
    await stream.cancel().catch(() => {});
  }
}

/** Closes an answer whose body is not needed. */
export async function closeBody(response: Response): Promise<void> {
  try {
    await response.body?.cancel();
  } catch {
    // The body is already being read, or has failed.
  }
}

function networkFailure(error: unknown): HubNetworkFailure {
  const reason = innermostCause(error);
  const message = reasonOf(reason);
  const code = reason instanceof Error && "code" in reason ? String(reason.code) : "";
  if (UNTRUSTED_CODE.test(code))
    return new HubNetworkFailure(
      `its certificate is not accepted (${quotable(message)}); for a proxy or hub with a private certificate authority, start the daemon with NODE_EXTRA_CA_CERTS set to its certificates, and check that the clock is right`,
      { cause: error, neverConnected: true, isFinal: true },
    );
  const isBlocked = message === BLOCKED_PORT;
  const neverConnected = CONNECT_ERROR_CODES.has(code) || isBlocked;
  return new HubNetworkFailure(message, { cause: error, neverConnected, isFinal: isBlocked });
}

/** Returns the innermost cause: undici hides the reason ("ECONNREFUSED …") in the cause of "fetch failed". */
function innermostCause(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { cause } = error;
  if (cause instanceof AggregateError && cause.errors.length > 0) return innermostCause(cause.errors[0]);
  return cause instanceof Error ? innermostCause(cause) : error;
}
