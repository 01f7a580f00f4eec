import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { z } from "zod";
import { ERROR_CODES, isErrorCode } from "../../errors/error-codes.ts";
import { CliError, EXIT, type ExitCode } from "../cli-error.ts";
import { ConnectError, describeEndpoint, type Endpoint, sendRequest } from "./send-request.ts";

/** Characters of an invalid response in an error message. */
const MAX_QUOTED_CHARACTERS = 80;

/** Interval of health requests while a daemon starts or stops. */
export const HEALTH_POLL_INTERVAL_MS = 100;

/** Body of GET /health, whatever its status. */
const healthSchema = z.object({ status: z.string() });

interface DaemonClientOptions {
  /** Tried in this order; the first that accepts a connection is used from then on. */
  readonly endpoints: readonly Endpoint[];
  readonly apiKey?: string | undefined;
  /** Cancels running requests, at the daemon as well. */
  readonly signal: AbortSignal;
}

/** Client of the daemon's native routes. Methods reject with a CliError, or with the signal's reason. */
export class DaemonClient {
  readonly #options: DaemonClientOptions;
  #endpoints: readonly Endpoint[];

  constructor(options: DaemonClientOptions) {
    this.#options = options;
    this.#endpoints = options.endpoints;
  }

  /** The endpoint in use, or those that will be tried. */
  get description(): string {
    return this.#endpoints.map(describeEndpoint).join(" or ");
  }

  /** Sends a request whose response is JSON. */
  async json<Schema extends z.ZodType>(
    schema: Schema,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<z.input<Schema>> {
    const { signal } = this.#options;
    const answer = await this.#send(method, path, body, signal);
    return this.#parse(schema, await this.#textOf(answer, signal));
  }

  /** Sends a POST request whose response is a stream of JSON lines. @throws ApiError for a line that holds an error */
  async *lines<Schema extends z.ZodType>(
    schema: Schema,
    path: string,
    body: unknown,
    signal = this.#options.signal,
  ): AsyncGenerator<z.input<Schema>, void, undefined> {
    const answer = await this.#send("POST", path, body, signal);
    try {
      for await (const line of readLines(this.#chunks(answer, signal))) {
        const failure = parseAs(errorBodySchema, line);
        if (failure) throw new ApiError(failure);
        yield this.#parse(schema, line);
      }
    } catch (error) {
      // An error that comes with an interruption is no news.
      throw signal.aborted ? signal.reason : error;
    }
  }

  /** Streams a body. Another request must have succeeded before, since a stream cannot be sent to a second endpoint. */
  async upload<Schema extends z.ZodType>(
    schema: Schema,
    path: string,
    { headers, body }: { readonly headers: Record<string, string>; readonly body: () => Readable },
  ): Promise<z.input<Schema>> {
    const { signal } = this.#options;
    const answer = await this.#request({ method: "POST", path, headers, body, signal });
    return this.#parse(schema, await this.#textOf(answer, signal));
  }

  /** Streams the raw body of a response. */
  async *bytes(path: string): AsyncGenerator<Uint8Array, void, undefined> {
    const { signal } = this.#options;
    yield* this.#chunks(await this.#send("GET", path, undefined, signal), signal);
  }

  async *#chunks(answer: IncomingMessage, signal: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      yield* answer;
    } catch (error) {
      throw this.#toCliError(error, signal);
    } finally {
      answer.destroy();
    }
  }

  /**
   * Status of GET /health: "ok" if the daemon serves, otherwise "starting" or "draining". Undefined if no daemon
   * answers.
   */
  async health(): Promise<string | undefined> {
    const { signal } = this.#options;
    for (const endpoint of this.#endpoints) {
      try {
        const answer = await sendRequest(endpoint, { method: "GET", path: "/health", headers: {}, signal });
        const health = parseAs(healthSchema, await text(answer));
        if (health) return health.status;
      } catch {
        signal.throwIfAborted();
      }
    }
    return undefined;
  }

  async #send(method: string, path: string, body: unknown, signal: AbortSignal): Promise<IncomingMessage> {
    const json = body === undefined ? undefined : JSON.stringify(body);
    const headers: Record<string, string> = json === undefined ? {} : { "content-type": "application/json" };
    return await this.#request({ method, path, headers, body: json, signal });
  }

  async #request({ headers, ...rest }: Parameters<typeof sendRequest>[1]): Promise<IncomingMessage> {
    const { signal } = rest;
    signal.throwIfAborted();
    const { apiKey } = this.#options;
    const common = {
      accept: "application/json, application/x-ndjson",
      ...(apiKey && { authorization: `Bearer ${apiKey}` }),
    };
    const answer = await this.#connect({ ...rest, headers: { ...common, ...headers } });
    if ((answer.statusCode ?? 0) < 400) return answer;
    const failure = parseAs(errorBodySchema, await this.#textOf(answer, signal));
    if (failure) throw new ApiError(failure, answer.statusCode);
    throw this.#unexpectedAnswer(`HTTP status ${answer.statusCode} without a reason`);
  }

  async #connect(outgoing: Parameters<typeof sendRequest>[1]): Promise<IncomingMessage> {
    let lastError: unknown;
    for (const endpoint of this.#endpoints) {
      try {
        const answer = await sendRequest(endpoint, outgoing);
        this.#endpoints = [endpoint];
        return answer;
      } catch (error) {
        if (!(error instanceof ConnectError)) throw this.#toCliError(error, outgoing.signal);
        lastError = error;
      }
    }
    throw new CliError(
      EXIT.noDaemon,
      "no_daemon",
      `No daemon answers at ${this.description}. Start one with: daybreak serve`,
      lastError,
    );
  }

  async #textOf(answer: IncomingMessage, signal: AbortSignal): Promise<string> {
    try {
      return await text(answer);
    } catch (error) {
      throw this.#toCliError(error, signal);
    }
  }

  #parse<Schema extends z.ZodType>(schema: Schema, json: string): z.input<Schema> {
    const value = parseAs(schema, json);
    if (value !== undefined) return value;
    throw this.#unexpectedAnswer(
      `it sent ${json.length > MAX_QUOTED_CHARACTERS ? `${json.slice(0, MAX_QUOTED_CHARACTERS)}…` : json}`,
    );
  }

  #toCliError(error: unknown, signal: AbortSignal): unknown {
    if (signal.aborted) return signal.reason;
    if (error instanceof CliError) return error;
    return new CliError(
      EXIT.error,
      "connection_lost",
      `The connection to ${this.description} ended before the answer was complete.`,
      error,
    );
  }

  #unexpectedAnswer(what: string): CliError {
    return new CliError(
      EXIT.error,
      "unexpected_answer",
      `The server at ${this.description} does not behave like Daybreak: ${what}.`,
    );
  }
}

/**
 * Parses JSON and checks it. Returns the value itself, not the schema's output, because --json shows also the fields of
 * a newer daemon. Undefined if it is no JSON or does not fit the schema.
 */
function parseAs<Schema extends z.ZodType>(schema: Schema, json: string): z.input<Schema> | undefined {
  try {
    const value: z.input<Schema> = JSON.parse(json);
    return schema.safeParse(value).success ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Error of native routes: the body, or the last line of a stream. */
const errorBodySchema = z.object({
  error: z.object({ message: z.string(), type: z.string(), code: z.string() }),
});

/**
 * Exit code for an error of the daemon (docs/errors.md). The code decides; for codes of a newer daemon, the type and
 * the HTTP status.
 */
function exitCodeFor(code: string, type: string, httpStatus: number | undefined): ExitCode {
  const status = isErrorCode(code) ? ERROR_CODES[code].status : httpStatus;
  if (status === 400 || status === 413) return EXIT.usage;
  if (type === "not_found" || status === 404) return EXIT.notFound;
  if (type === "conflict" || status === 409) return EXIT.conflict;
  if (type === "overloaded" || status === 503 || status === 429) return EXIT.tryLater;
  return EXIT.error;
}

const KEY_HINT = "The command line takes the key from SERVICE_API_KEY.";

/** Error response of the daemon, with its `code` and `type`. */
export class ApiError extends CliError {
  readonly type: string;
  /** HTTP status; undefined for an error within a stream. */
  readonly status: number | undefined;

  constructor(body: z.infer<typeof errorBodySchema>, status?: number) {
    const { message, type, code } = body.error;
    super(
      exitCodeFor(code, type, status),
      code,
      code === "unauthorized" ? `${message} ${KEY_HINT}` : message,
    );
    this.type = type;
    this.status = status;
  }
}

/**
 * Splits a stream of bytes into lines, without line ends and empty lines. Throws what the stream throws; node:readline
 * would ignore errors of its input.
 */
export async function* readLines(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of bytes) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n/);
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim() !== "") yield line;
  }
  rest += decoder.decode();
  if (rest.trim() !== "") yield rest;
}
