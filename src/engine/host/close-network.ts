import dgram from "node:dgram";
import dns from "node:dns";
import { syncBuiltinESMExports } from "node:module";
import net from "node:net";

/**
 * Disables the network in a process of Node 24, whose permission model does not restrict it (later versions do). Loaded
 * with --import, so it runs first in every thread. Replaces every function that connects, listens, binds, sends or
 * resolves names, in Node's public classes and in the native classes that implement them. Inherited pipes keep working.
 * Like the permission model, this does not restrict a thread that hostile code starts with other flags.
 */

const NETWORK_METHODS = ["connect", "connect6", "bind", "bind6", "listen", "send", "send6"];

function denyAccess(): never {
  throw Object.assign(new Error("Access to this API has been restricted: an engine has no network."), {
    code: "ERR_ACCESS_DENIED",
    permission: "Net",
  });
}

function disableMethods(holder: object, names: readonly string[]): void {
  for (const name of names) {
    if (typeof Reflect.get(holder, name) !== "function") continue;
    Object.defineProperty(holder, name, { value: denyAccess, writable: false, configurable: false });
  }
}

/** Names of the functions of a module or class that resolve host names. */
function resolverMethods(holder: object): string[] {
  return Object.getOwnPropertyNames(holder).filter((name) => /^(lookup|resolve|reverse|query)/.test(name));
}

/** Prototype of the native class that implements a stream or socket. Node does not export these classes. */
function nativeClassOf(handle: unknown): object {
  const prototype: unknown = typeof handle === "object" && handle !== null && Object.getPrototypeOf(handle);
  if (typeof prototype !== "object" || prototype === null)
    throw new Error("This version of Node has no such handle.");
  return prototype;
}

/** Native class of connections. Node creates a native handle before it finds that the target is invalid. */
function connectionHandle(target: object): object {
  const socket = new net.Socket();
  try {
    const connect: unknown = Reflect.get(socket, "connect");
    if (typeof connect === "function") Reflect.apply(connect, socket, [target]);
  } catch {
    // Expected: the target is invalid.
  }
  const handle = nativeClassOf(Reflect.get(socket, "_handle"));
  socket.destroy();
  return handle;
}

function datagramHandle(): object {
  const socket = dgram.createSocket("udp4");
  const state = Object.getOwnPropertySymbols(socket)
    .map((symbol): unknown => Reflect.get(socket, symbol))
    .find((value) => typeof value === "object" && value !== null && "handle" in value);
  const handle = nativeClassOf(typeof state === "object" && state !== null && Reflect.get(state, "handle"));
  socket.close();
  return handle;
}

function resolverHandle(): object {
  return nativeClassOf(Reflect.get(new dns.Resolver(), "_handle"));
}

const resolver = resolverHandle();
const tcp = connectionHandle({ port: 1, host: "nowhere.invalid", lookup: true });
const pipe = connectionHandle({ path: true });
for (const handle of [tcp, pipe, datagramHandle()]) disableMethods(handle, NETWORK_METHODS);
disableMethods(resolver, resolverMethods(resolver));
for (const holder of [net.Socket.prototype, net.Server.prototype, dgram.Socket.prototype])
  disableMethods(holder, NETWORK_METHODS);
for (const holder of [dns, dns.promises, dns.Resolver.prototype, dns.promises.Resolver.prototype]) {
  disableMethods(holder, resolverMethods(holder));
}
syncBuiltinESMExports();
