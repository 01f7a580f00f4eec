import dgram from "node:dgram";
import dns from "node:dns";
import { syncBuiltinESMExports } from "node:module";
import net from "node:net";

/**
 * Takes the network from a process on Node 24, whose permission model knows nothing of it; later ones refuse it
 * themselves. It is run before anything else, in every thread. What connects, listens, binds, sends or looks a name up
 * is replaced, in the classes that Node's own modules use as well as beneath them. Pipes that were inherited still
 * work. Like the permission model, this does not count for a thread that hostile code starts with flags of its choice.
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

/** Functions of a module or class that are not about its own settings. */
function lookUps(holder: object): string[] {
  return Object.getOwnPropertyNames(holder).filter((name) => /^(lookup|resolve|reverse|query)/.test(name));
}

/** The class beneath a stream or socket, which Node gives no name. */
function beneath(handle: unknown): object {
  const prototype: unknown = typeof handle === "object" && handle !== null && Object.getPrototypeOf(handle);
  if (typeof prototype !== "object" || prototype === null) throw new Error("This Node has no such handle.");
  return prototype;
}

/** The class beneath connections: Node creates it once it sees that the target is not an address. */
function connectionHandle(nowhere: object): object {
  const socket = new net.Socket();
  try {
    const connect: unknown = Reflect.get(socket, "connect");
    if (typeof connect === "function") Reflect.apply(connect, socket, [nowhere]);
  } catch {
    // Meant to fail: only what it leaves is wanted.
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
