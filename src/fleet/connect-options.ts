import { readFileSync } from "node:fs";
import os from "node:os";
import type { NodeConnectionOptions } from "@nats-io/transport-node";
import type { Config } from "../config/schema.ts";
import { ServiceError } from "../errors/service-error.ts";

/** Pause between two attempts to connect: short, because what it costs is small. */
const RECONNECT_MS = 1000;
/** An attempt that takes longer has failed. */
const CONNECT_TIMEOUT_MS = 5000;
/** How often the connection is tried while nothing comes, and how often that may fail. */
const PING_MS = 2000;
const MOST_LOST_PINGS = 2;

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
    maxPingOut: MOST_LOST_PINGS,
  };
}

/** Text of a file that the configuration names. */
export function readText(file: string, option: string): string {
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
