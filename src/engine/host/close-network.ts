import dgram from "node:dgram";
import dns from "node:dns";
import { syncBuiltinESMExports } from "node:module";
import net from "node:net";

/**
 * Disables the network on Node 24, whose permission model does not cover it, unlike later versions. Runs before
 * anything else, in every thread. Replaces every function that connects, listens, binds, sends or resolves names, in
 * Node's public classes and in the native ones below them. Inherited pipes keep working. Like the permission model,
 * this does not restrict a thread that hostile code starts with its own flags.
 */

const WAYS_OUT = ["connect", "connect6", "bind", "bind6", "listen", "send", "send6"];

function refuse(): never {
  throw Object.assign(new Error("Access to this API has been restricted: an engine has no network."), {
    code: "ERR_ACCESS_DENIED",
    permission: "Net",
  });
}

function close(holder: object, names: readonly string[]): void {
  for (const name of names) {
    if (typeof Reflect.get(holder, name) !== "function") continue;
    Object.defineProperty(holder, name, { value: refuse, writable: false, configurable: false });
  }
}

/** Functions of a module or class that resolve names. */
function lookUps(holder: object): string[] {
  return Object.getOwnPropertyNames(holder).filter((name) => /^(lookup|resolve|reverse|query)/.test(name));
}

/** The native class below a stream or socket, which Node does not export. */
function beneath(handle: unknown): object {
  const prototype: unknown = typeof handle === "object" && handle !== null && Object.getPrototypeOf(handle);
  if (typeof prototype !== "object" || prototype === null)
    throw new Error("This version of Node has no such handle.");
  return prototype;
}

/** The native class below connections: Node creates a handle before it finds that the target is not an address. */
function connectionHandle(nowhere: object): object {
  const socket = new net.Socket();
  try {
    const connect: unknown = Reflect.get(socket, "connect");
    if (typeof connect === "function") Reflect.apply(connect, socket, [nowhere]);
  } catch {
    // Expected to fail; only the handle is needed.
  }
  const handle = beneath(Reflect.get(socket, "_handle"));
  socket.destroy();
  return handle;
}

function datagramHandle(): object {
  const socket = dgram.createSocket("udp4");
  const state = Object.getOwnPropertySymbols(socket)
    .map((symbol): unknown => Reflect.get(socket, symbol))
    .find((value) => typeof value === "object" && value !== null && "handle" in value);
  const handle = beneath(typeof state === "object" && state !== null && Reflect.get(state, "handle"));
  socket.close();
  return handle;
}

function resolverHandle(): object {
  return beneath(Reflect.get(new dns.Resolver(), "_handle"));
}

const resolver = resolverHandle();
const tcp = connectionHandle({ port: 1, host: "nowhere.invalid", lookup: true });
const pipe = connectionHandle({ path: true });
for (const handle of [tcp, pipe, datagramHandle()]) close(handle, WAYS_OUT);
close(resolver, lookUps(resolver));
for (const holder of [net.Socket.prototype, net.Server.prototype, dgram.Socket.prototype])
  close(holder, WAYS_OUT);
for (const holder of [dns, dns.promises, dns.Resolver.prototype, dns.promises.Resolver.prototype]) {
  close(holder, lookUps(holder));
}
syncBuiltinESMExports();
