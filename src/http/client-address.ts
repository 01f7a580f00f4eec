import net from "node:net";

/** Groups of an IPv6 address. */
const IPV6_GROUPS = 8;

/** An IPv4 address mapped to IPv6 as two hexadecimal groups, as URLs and some systems write it. */
const MAPPED_IN_HEX = /^::ffff:([\da-f]{1,4}):([\da-f]{1,4})$/i;

/**
 * Normalizes an address: IPv6 listeners report IPv4 addresses as `::ffff:192.0.2.1`, and link-local addresses with their
 * interface.
 */
function plainAddress(address: string): string {
  const bare = address.replace(/^::ffff:(?=\d+\.)/i, "").replace(/^([^:]*:[^%]*)%.*$/, "$1");
  const [, front, back] = MAPPED_IN_HEX.exec(bare) ?? [];
  if (front === undefined || back === undefined) return bare;
  const [high, low] = [Number.parseInt(front, 16), Number.parseInt(back, 16)];
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join(".");
}

/** Whether only this machine can reach the address, which may be in the brackets of a URL. */
export function isLoopbackAddress(address: string): boolean {
  const plain = plainAddress(address.replace(/^\[|\]$/g, "").toLowerCase());
  if (plain === "localhost" || plain === "::1") return true;
  return net.isIPv4(plain) && plain.startsWith("127.");
}

/**
 * The client of an address, for counting. An IPv6 client has 2^64 addresses, which share their first half. All clients of a
 * Unix socket, which have no address, count as one.
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
