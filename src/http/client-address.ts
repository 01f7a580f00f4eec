import net from "node:net";
import type { MiddlewareHandler } from "hono";
import { ServiceError } from "../errors/service-error.ts";
import type { AppEnv } from "./app-env.ts";

/** Groups of an IPv6 address. */
const IPV6_GROUPS = 8;

/** IPv4 address mapped to IPv6 as two hexadecimal groups, as URLs and some systems write it. */
const MAPPED_IN_HEX = /^::ffff:([\da-f]{1,4}):([\da-f]{1,4})$/i;

/**
 * Normalizes an address: IPv6 listeners report IPv4 addresses as `::ffff:192.0.2.1`, and link-local addresses with
 * their interface.
 */
function plainAddress(address: string): string {
  const unmapped = address.replace(/^::ffff:(?=\d+\.)/i, "").replace(/^([^:]*:[^%]*)%.*$/, "$1");
  const [, front, back] = MAPPED_IN_HEX.exec(unmapped) ?? [];
  if (front === undefined || back === undefined) return unmapped;
  const [high, low] = [Number.parseInt(front, 16), Number.parseInt(back, 16)];
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join(".");
}

/** True for a loopback address, which may be in the brackets of a URL. */
export function isLoopbackAddress(address: string): boolean {
  const plain = plainAddress(address.replace(/^\[|\]$/g, "").toLowerCase());
  if (plain === "localhost" || plain === "::1") return true;
  return net.isIPv4(plain) && plain.startsWith("127.");
}

/**
 * Key of a client for counting, by its address. An IPv6 client has 2^64 addresses, which share their first half. All
 * clients of a Unix socket, which have no address, count as one.
 */
export function clientOf(address: string | undefined): string {
  const plain = plainAddress(address ?? "").toLowerCase();
  return net.isIPv6(plain) && !isLoopbackAddress(plain) ? networkOf(plain) : plain;
}

function networkOf(address: string): string {
  const [front = "", back] = address.split("::");
  const groups = front.split(":").filter((group) => group !== "");
  const behind = back?.split(":").filter((group) => group !== "").length ?? 0;
  const omitted = back === undefined ? 0 : IPV6_GROUPS - groups.length - behind;
  for (let count = 0; count < omitted; count += 1) groups.push("0");
  return groups.slice(0, IPV6_GROUPS / 2).join(":");
}

/** Headers that proxies add. A proxy's clients may be remote. */
const PROXY_HEADERS = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

/**
 * Records whether a request comes from a program on this machine: over IPC or from a loopback address, but neither
 * through a proxy nor from a foreign page.
 */
export function localClient(): MiddlewareHandler<AppEnv> {
  return async (context, next) => {
    const address = context.env?.incoming?.socket.remoteAddress;
    const isLocal =
      address !== undefined &&
      isLoopbackAddress(address) &&
      !context.get("isForeignPage") &&
      PROXY_HEADERS.every((name) => context.req.header(name) === undefined);
    context.set("isLocalClient", context.env?.ipc === true || isLocal);
    await next();
  };
}

/** Host of a Host header, without port and trailing dot, in lowercase. */
function hostName(header: string): string {
  const host = header.trim().toLowerCase();
  const match = /^(\[[0-9a-f:.]+\]|[^:]+)(?::\d{1,5})?$/.exec(host);
  return match?.[1]?.replace(/\.$/, "") ?? "";
}

/**
 * Refuses unknown Host headers if the daemon listens on a loopback address. Otherwise a page whose name resolves to
 * 127.0.0.1 (DNS rebinding) would have the daemon's origin. Pages cannot reach the IPC socket.
 */
export function hostCheck(boundTo: string, allowedHosts: readonly string[]): MiddlewareHandler<AppEnv> {
  const active = isLoopbackAddress(boundTo);
  const allowed = new Set(allowedHosts.map(hostName));
  return async (context, next) => {
    if (active && context.env?.ipc !== true) {
      const name = hostName(context.req.header("host") ?? new URL(context.req.url).host);
      if (!isLoopbackAddress(name) && !name.endsWith(".localhost") && !allowed.has(name)) {
        throw new ServiceError(
          "forbidden_host",
          "This Host header is not allowed. Add the name to http.allowed_hosts if it is yours.",
        );
      }
    }
    await next();
  };
}
