import net from "node:net";

/** Numbers that an IPv6 address is written with. */
const IPV6_GROUPS = 8;

/** How URLs and some systems write an IPv4 address as IPv6, in two numbers instead of four. */
const MAPPED_IN_HEX = /^::ffff:([\da-f]{1,4}):([\da-f]{1,4})$/i;

/**
 * An address as its owner writes it: listeners for IPv6 give the addresses of IPv4 as `::ffff:192.0.2.1`, and those of
 * one network with the interface behind them.
 */
function plainAddress(address: string): string {
  const bare = address.replace(/^::ffff:(?=\d+\.)/i, "").replace(/(?<=:.*)%.*$/, "");
  const [, front, back] = MAPPED_IN_HEX.exec(bare) ?? [];
  if (front === undefined || back === undefined) return bare;
  const [high, low] = [Number.parseInt(front, 16), Number.parseInt(back, 16)];
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join(".");
}

/** True for an address that only this machine reaches; also in the brackets of a URL. */
export function isLoopbackAddress(address: string): boolean {
  const plain = plainAddress(address.replace(/^\[|\]$/g, "").toLowerCase());
  if (plain === "localhost" || plain === "::1") return true;
  return net.isIPv4(plain) && plain.startsWith("127.");
}

/**
 * Who sits behind an address, to be counted by. One client of IPv6 has 2^64 addresses, which share their first half.
 * The clients of a Unix socket have no address and are one.
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
