import { useProxyOf } from "./proxy-from-env.ts";

/** The part of undici's Dispatcher that a request needs. */
interface Dispatcher {
  dispatch(options: object, handler: unknown): boolean;
}

/** Where undici keeps the dispatcher behind the built-in fetch: the current protocol, then the older one. */
const GLOBAL_DISPATCHERS = [Symbol.for("undici.globalDispatcher.2"), Symbol.for("undici.globalDispatcher.1")];

/** First undici whose fetch speaks HTTP/2 unasked; Node 26 is the first to carry it. */
const FIRST_HTTP2_UNDICI = 8;

/**
 * The built-in fetch, held to HTTP/1.1. undici runs HTTP/2 with windows of 256 KiB, which caps a download near
 * window / round-trip time (3.5 MB/s at 75 ms); a TCP connection of HTTP/1.1 has no such cap. Goes through the
 * proxy that the environment of the first call names.
 */
export const http1Fetch: typeof fetch = async (input, init) => {
  if (!proxyIsSet) useProxyOf(process.env);
  proxyIsSet = true;
  const dispatcher = await http1Dispatcher();
  return dispatcher === undefined
    ? fetch(input, init)
    : fetch(input, Object.assign({ ...init }, { dispatcher }));
};

let proxyIsSet = false;

async function http1Dispatcher(): Promise<Dispatcher | undefined> {
  if (!(Number.parseInt(process.versions["undici"] ?? "0", 10) >= FIRST_HTTP2_UNDICI)) return undefined;
  let base = findDispatcher();
  if (base === undefined) {
    // undici makes its dispatcher on the first fetch; this one needs no network.
    await (await fetch("data:,")).arrayBuffer();
    base = findDispatcher();
  }
  if (base === undefined) return undefined;
  const target = base;
  return { dispatch: (options, handler) => target.dispatch({ ...options, allowH2: false }, handler) };
}

function findDispatcher(): Dispatcher | undefined {
  for (const key of GLOBAL_DISPATCHERS) {
    const candidate: unknown = Reflect.get(globalThis, key);
    if (isDispatcher(candidate)) return candidate;
  }
  return undefined;
}

function isDispatcher(value: unknown): value is Dispatcher {
  return (
    typeof value === "object" && value !== null && "dispatch" in value && typeof value.dispatch === "function"
  );
}
