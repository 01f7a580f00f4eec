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
import { isRefused, natsTrouble } from "../api/management/machine-schemas.ts";
import { reasonOf } from "../errors/reason-of.ts";
import { ServiceError } from "../errors/service-error.ts";

/** Pause after an attempt that the client itself gave up. */
const RETRY_MS = 1000;
/** Ending must not wait for a server that does not answer. */
const LEAVE_MS = 1000;

/** Reads what comes for a subject. `reply` answers one who has asked, and is undefined when nobody waits. */
export type ReadMessage = (
  data: Uint8Array,
  subject: string,
  reply: ((data: Uint8Array) => void) | undefined,
) => void;

/**
 * The connection to the NATS servers. It is made in the background, and made again whenever it is lost, forever: those who
 * use it look at `isConnected`, and lose what they send meanwhile.
 */
export class FleetConnection {
  readonly #config: Config["fleet"];
  readonly #logger: Logger;
  readonly #readers = new Map<string, ReadMessage>();
  readonly #listeners = new Set<() => void>();
  readonly #left = new AbortController();
  /** Settles when the connection is made for the first time, or when it is closed. */
  readonly joined: Promise<void>;
  /** The servers, without their passwords. */
  readonly where: string;
  #nats: NatsConnection | undefined;
  #isConnected = false;
  #problem: string | undefined;
  #wasTold = false;

  /** @throws ServiceError invalid_parameter when a file that the configuration names cannot be read */
  constructor(config: Config["fleet"], logger: Logger) {
    this.#config = config;
    this.#logger = logger;
    const options = natsOptions(config);
    this.where = options.servers.join(", ");
    const { credentials } = config;
    const authenticator =
      credentials === undefined
        ? undefined
        : credsAuthenticator(new TextEncoder().encode(readText(credentials, "fleet.credentials")));
    const joined = Promise.withResolvers<void>();
    this.joined = joined.promise;
    void this.#stay({ ...options, ...(authenticator && { authenticator }) }, joined.resolve);
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** Why there is no connection, as far as that is known. */
  get problem(): string | undefined {
    return this.#isConnected ? undefined : this.#problem;
  }

  /** The NATS client, for those who need more of it than messages; undefined while there is no connection. */
  get nats(): NatsConnection | undefined {
    return this.#isConnected ? this.#nats : undefined;
  }

  /** Bytes that one message may have. */
  get maxPayload(): number {
    return this.#nats?.info?.max_payload ?? 0;
  }

  /** A subject of this fleet. */
  subject(...parts: readonly string[]): string {
    return [this.#config.prefix, ...parts].join(".");
  }

  /** Sends a message; without a connection it is lost, and false is returned. */
  publish(subject: string, data: Uint8Array): boolean {
    const nats = this.#nats;
    return this.#isConnected && nats !== undefined && this.#send(() => nats.publish(subject, data));
  }

  /** False when the client refuses to send: it is just being closed, say. */
  #send(send: () => unknown): boolean {
    try {
      send();
      return true;
    } catch (error) {
      this.#logger.debug({ err: error }, "A message to the fleet was not sent");
      return false;
    }
  }

  /** Asks the one who listens to a subject. @throws when there is none, or no answer in time */
  async ask(subject: string, data: Uint8Array, timeoutMs: number): Promise<Uint8Array> {
    if (!this.#isConnected || !this.#nats) throw new Error("the NATS server is not reachable");
    return (await this.#nats.request(subject, data, { timeout: timeoutMs })).data;
  }

  /** Has a reader for a subject, now and after each reconnection. It must not throw. */
  listen(subject: string, read: ReadMessage): void {
    this.#readers.set(subject, read);
    if (this.#nats) this.#subscribe(this.#nats, subject, read);
  }

  /** Calls back when the connection is made or lost. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Leaves for good. What has been published is still sent. */
  async close(): Promise<void> {
    this.#left.abort();
    const nats = this.#nats;
    if (!nats) return;
    const flushed = this.#isConnected ? nats.flush().catch(() => undefined) : undefined;
    await Promise.race([flushed, sleep(LEAVE_MS, undefined, { ref: false })]);
    this.#change(false);
    await Promise.race([nats.close(), sleep(LEAVE_MS, undefined, { ref: false })]);
  }

  /** Never rejects. */
  async #stay(options: Parameters<typeof connect>[0], onJoined: () => void): Promise<void> {
    const { signal } = this.#left;
    while (!signal.aborted) {
      try {
        const nats = await connect(options);
        if (signal.aborted) await nats.close();
        else {
          this.#nats = nats;
          for (const [subject, read] of this.#readers) this.#subscribe(nats, subject, read);
          this.#change(true);
          onJoined();
          await Promise.all([this.#follow(nats), nats.closed()]);
        }
      } catch (error) {
        const message = reasonOf(error);
        this.#problem = message;
        this.#tell(
          isRefused(message)
            ? `The fleet's NATS server ${natsTrouble(message)}, and is tried again: correct them, and start the daemon again`
            : `The fleet's NATS server is not reachable, and is tried again: ${message}`,
        );
      }
      this.#nats = undefined;
      this.#change(false);
      await sleep(RETRY_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
    onJoined();
  }

  #subscribe(nats: NatsConnection, subject: string, read: ReadMessage): void {
    nats.subscribe(subject, {
      callback: (error, message) => {
        if (error)
          this.#logger.warn({ err: error, subject }, "The fleet's NATS server refuses a subscription");
        else {
          const reply = (data: Uint8Array): void => void this.#send(() => message.respond(data));
          read(message.data, message.subject, message.reply ? reply : undefined);
        }
      },
    });
  }

  async #follow(nats: NatsConnection): Promise<void> {
    for await (const status of nats.status()) this.#note(status);
  }

  #note(status: Status): void {
    if (status.type === "disconnect") {
      this.#problem = undefined;
      this.#change(false);
      this.#tell("The fleet's NATS server is gone: this machine works alone until it is back");
    } else if (status.type === "reconnect") {
      this.#change(true);
    } else if (status.type === "error" && !isAboutJetStream(status.error)) {
      this.#problem = status.error.message;
      this.#logger.warn({ err: status.error }, "The fleet's NATS server reports an error");
    }
  }

  #change(isConnected: boolean): void {
    if (this.#isConnected === isConnected) return;
    this.#isConnected = isConnected;
    if (isConnected && this.#wasTold) this.#logger.info("The fleet's NATS server is back");
    if (isConnected) this.#wasTold = false;
    for (const listener of this.#listeners) listener();
  }

  /** Once for each time that it is lost. */
  #tell(text: string): void {
    if (this.#wasTold || this.#left.signal.aborted) return;
    this.#wasTold = true;
    this.#logger.warn(text);
  }
}

/** Whoever asks JetStream for something without the permission is told so, and says what that means. */
function isAboutJetStream(error: Error): boolean {
  return error instanceof errors.PermissionViolationError && error.subject.startsWith("$JS.");
}

/** Pause between two attempts to connect: short, because what it costs is small. */
const RECONNECT_MS = 1000;
/** An attempt that takes longer has failed. */
const CONNECT_TIMEOUT_MS = 5000;
/** How often the connection is tried while nothing comes, and how often that may fail. */
const PING_MS = 2000;
const MAX_LOST_PINGS = 2;

interface NatsOptions extends NodeConnectionOptions {
  readonly servers: string[];
}

/**
 * What the NATS client is told, without its authentication by file.
 * @throws ServiceError invalid_parameter when the file of the authority cannot be read
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
    // So that permission for the subjects of the prefix is all that an account needs.
    inboxPrefix: `${prefix}.inbox`,
    maxReconnectAttempts: -1,
    // An account may be created, or a server be configured again, while we wait.
    ignoreAuthErrorAbort: true,
    reconnectTimeWait: RECONNECT_MS,
    timeout: CONNECT_TIMEOUT_MS,
    pingInterval: PING_MS,
    maxPingOut: MAX_LOST_PINGS,
  };
}

/** Text of a file that the configuration names. */
function readText(file: string, option: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new ServiceError("invalid_parameter", `The file of ${option}, ${file}, cannot be read.`, { cause });
  }
}

/** "user:password" or a token before the host. */
function secretOf({ username, password }: URL): Pick<NodeConnectionOptions, "user" | "pass" | "token"> {
  const user = decodeURIComponent(username);
  return password === "" ? { token: user } : { user, pass: decodeURIComponent(password) };
}
