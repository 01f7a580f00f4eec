import { readFileSync } from "node:fs";
import os from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import {
  connect,
  credsAuthenticator,
  errors,
  type NatsConnection,
  type NodeConnectionOptions,
  type Status,
} from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { Config } from "../config/schema.ts";
import { isNatsAuthFailure, describeNatsProblem } from "../api/wire/machines.ts";
import { reasonOf, ServiceError } from "../errors/service-error.ts";

/** Delay after an attempt that the NATS client gave up. */
const RETRY_DELAY_MS = 1000;
/** Maximum wait for the server when closing. */
const CLOSE_TIMEOUT_MS = 1000;

/** Handles messages of a subject. `reply` is undefined if the sender expects no reply. */
export type MessageHandler = (
  data: Uint8Array,
  subject: string,
  reply: ((data: Uint8Array) => void) | undefined,
) => void;

/**
 * Connection to the NATS servers, made in the background and remade whenever it is lost. Callers check `isConnected`;
 * messages sent without a connection are lost.
 */
export class FleetConnection {
  readonly #config: Config["fleet"];
  readonly #logger: Logger;
  readonly #handlers = new Map<string, MessageHandler>();
  readonly #listeners = new Set<() => void>();
  readonly #closing = new AbortController();
  /** Settles when the connection is first made, or when it is closed. */
  readonly joined: Promise<void>;
  /** Server addresses without passwords. */
  readonly servers: string;
  #nats: NatsConnection | undefined;
  #isConnected = false;
  #problem: string | undefined;
  #hasWarned = false;

  /** @throws ServiceError invalid_parameter if a file that the configuration names cannot be read */
  constructor(config: Config["fleet"], logger: Logger) {
    this.#config = config;
    this.#logger = logger;
    const options = natsOptions(config);
    this.servers = options.servers.join(", ");
    const { credentials } = config;
    const authenticator =
      credentials === undefined
        ? undefined
        : credsAuthenticator(new TextEncoder().encode(readText(credentials, "fleet.credentials")));
    const joined = Promise.withResolvers<void>();
    this.joined = joined.promise;
    void this.#keepConnected({ ...options, ...(authenticator && { authenticator }) }, joined.resolve);
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** Reason why there is no connection, if known. */
  get problem(): string | undefined {
    return this.#isConnected ? undefined : this.#problem;
  }

  /** NATS client, for JetStream; undefined without a connection. */
  get nats(): NatsConnection | undefined {
    return this.#isConnected ? this.#nats : undefined;
  }

  /** Maximum bytes of a message. */
  get maxPayload(): number {
    return this.#nats?.info?.max_payload ?? 0;
  }

  /** Returns a subject of this fleet. */
  subject(...parts: readonly string[]): string {
    return [this.#config.prefix, ...parts].join(".");
  }

  /** Sends a message; returns false if it is lost because there is no connection. */
  publish(subject: string, data: Uint8Array): boolean {
    const nats = this.#nats;
    return this.#isConnected && nats !== undefined && this.#send(() => nats.publish(subject, data));
  }

  /** Returns false if the client refuses to send, for example while it is being closed. */
  #send(send: () => unknown): boolean {
    try {
      send();
      return true;
    } catch (error) {
      this.#logger.debug({ err: error }, "A message to the fleet was not sent");
      return false;
    }
  }

  /** Sends a request. @throws if nobody listens to the subject, or no reply arrives in time */
  async request(subject: string, data: Uint8Array, timeoutMs: number): Promise<Uint8Array> {
    if (!this.#isConnected || !this.#nats) throw new Error("the NATS server is not reachable");
    return (await this.#nats.request(subject, data, { timeout: timeoutMs })).data;
  }

  /** Sets the handler of a subject, also for later connections. It must not throw. */
  listen(subject: string, handler: MessageHandler): void {
    this.#handlers.set(subject, handler);
    if (this.#nats) this.#subscribe(this.#nats, subject, handler);
  }

  /** Calls back when the connection is made or lost. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Closes the connection for good, after sending what has been published. */
  async close(): Promise<void> {
    this.#closing.abort();
    const nats = this.#nats;
    if (!nats) return;
    const flushed = this.#isConnected ? nats.flush().catch(() => undefined) : undefined;
    await Promise.race([flushed, sleep(CLOSE_TIMEOUT_MS, undefined, { ref: false })]);
    this.#setConnected(false);
    await Promise.race([nats.close(), sleep(CLOSE_TIMEOUT_MS, undefined, { ref: false })]);
  }

  /** Never rejects. */
  async #keepConnected(options: Parameters<typeof connect>[0], onJoined: () => void): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        const nats = await connect(options);
        if (signal.aborted) await nats.close();
        else {
          this.#nats = nats;
          for (const [subject, handler] of this.#handlers) this.#subscribe(nats, subject, handler);
          this.#setConnected(true);
          onJoined();
          await Promise.all([this.#followStatus(nats), nats.closed()]);
        }
      } catch (error) {
        const message = reasonOf(error);
        this.#problem = message;
        this.#warnOnce(
          isNatsAuthFailure(message)
            ? `The fleet's NATS server ${describeNatsProblem(message)}, and is tried again: correct them, and start the daemon again`
            : `The fleet's NATS server is not reachable, and is tried again: ${message}`,
        );
      }
      this.#nats = undefined;
      this.#setConnected(false);
      await sleep(RETRY_DELAY_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
    onJoined();
  }

  #subscribe(nats: NatsConnection, subject: string, handler: MessageHandler): void {
    nats.subscribe(subject, {
      callback: (error, message) => {
        if (error)
          this.#logger.warn({ err: error, subject }, "The fleet's NATS server refuses a subscription");
        else {
          const reply = (data: Uint8Array): void => void this.#send(() => message.respond(data));
          handler(message.data, message.subject, message.reply ? reply : undefined);
        }
      },
    });
  }

  async #followStatus(nats: NatsConnection): Promise<void> {
    for await (const status of nats.status()) this.#handleStatus(status);
  }

  #handleStatus(status: Status): void {
    if (status.type === "disconnect") {
      this.#problem = undefined;
      this.#setConnected(false);
      this.#warnOnce("The fleet's NATS server is gone: this machine works alone until it is back");
    } else if (status.type === "reconnect") {
      this.#setConnected(true);
    } else if (status.type === "error" && !isJetStreamPermission(status.error)) {
      this.#problem = status.error.message;
      this.#logger.warn({ err: status.error }, "The fleet's NATS server reports an error");
    }
  }

  #setConnected(isConnected: boolean): void {
    if (this.#isConnected === isConnected) return;
    this.#isConnected = isConnected;
    if (isConnected && this.#hasWarned) this.#logger.info("The fleet's NATS server is back");
    if (isConnected) this.#hasWarned = false;
    for (const listener of this.#listeners) listener();
  }

  /** Logs a warning once for each lost connection. */
  #warnOnce(text: string): void {
    if (this.#hasWarned || this.#closing.signal.aborted) return;
    this.#hasWarned = true;
    this.#logger.warn(text);
  }
}

/** Returns true for a missing JetStream permission, which the failed request reports itself. */
function isJetStreamPermission(error: Error): boolean {
  return error instanceof errors.PermissionViolationError && error.subject.startsWith("$JS.");
}

/** Delay between two attempts to connect. */
const RECONNECT_DELAY_MS = 1000;
/** Timeout of an attempt to connect. */
const CONNECT_TIMEOUT_MS = 5000;
/** Interval of pings while nothing arrives, and lost pings until the connection counts as lost. */
const PING_INTERVAL_MS = 2000;
const MAX_LOST_PINGS = 2;

interface NatsOptions extends NodeConnectionOptions {
  readonly servers: string[];
}

/**
 * Returns the options of the NATS client, without authentication by file.
 * @throws ServiceError invalid_parameter if the file of the certificate authority cannot be read
 */
export function natsOptions({ nats = "", name, prefix, tls_ca: authority }: Config["fleet"]): NatsOptions {
  const urls = nats.split(",").map((part) => new URL(part.trim()));
  const withSecret = urls.find(({ username }) => username !== "");
  const needsTls = authority !== undefined || urls.some(({ protocol }) => protocol === "tls:");
  return {
    servers: urls.map(({ host }) => host),
    name: `daybreak ${name ?? os.hostname()}`,
    ...(withSecret && secretOf(withSecret)),
    ...(needsTls && { tls: authority === undefined ? {} : { ca: readText(authority, "fleet.tls_ca") } }),
    // With this, permission for the subjects of the prefix is all that an account needs.
    inboxPrefix: `${prefix}.inbox`,
    maxReconnectAttempts: -1,
    // An account may be created, or a server reconfigured, while the client waits.
    ignoreAuthErrorAbort: true,
    reconnectTimeWait: RECONNECT_DELAY_MS,
    timeout: CONNECT_TIMEOUT_MS,
    pingInterval: PING_INTERVAL_MS,
    maxPingOut: MAX_LOST_PINGS,
  };
}

/** Reads a file that the configuration names. */
function readText(file: string, option: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new ServiceError("invalid_parameter", `The file of ${option}, ${file}, cannot be read.`, { cause });
  }
}

/** Reads "user:password" or a token before the host. */
function secretOf({ username, password }: URL): Pick<NodeConnectionOptions, "user" | "pass" | "token"> {
  const user = decodeURIComponent(username);
  return password === "" ? { token: user } : { user, pass: decodeURIComponent(password) };
}
