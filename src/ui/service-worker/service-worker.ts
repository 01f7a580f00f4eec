import type { PageList } from "../../api/wire/page-files.ts";
import {
  isConnectOrigin,
  MAX_CONNECT_ORIGINS,
  parseOrigins,
  withConnectSources,
} from "../../api/wire/page-policy.ts";
import {
  addressOf,
  currentVersion,
  type FetchEvent,
  deleteAllVersions,
  deleteOldVersions,
  ignoreFailure,
  cacheFile,
  cacheVersion,
  cachedFile,
  rememberClient,
  versionOf,
  worker,
} from "./cached-versions.ts";

/**
 * Caches the page, so that it opens without its server. Each navigation asks the server for a new version first, which
 * is cached completely before it is used. Requests to the daemon's APIs are not intercepted.
 */

/** URL of the page's folder. */
const PAGE = new URL("./", worker.location.href).href;
const ENGINE = addressOf("browser/");
const LIST = new URL("files.json", PAGE).href;

/** Deadline of the server before the cached version is used. */
const LIST_DEADLINE_MS = 3000;

/** Headers that threads need. Static hosts do not send them. */
const ISOLATION = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
  // The sandboxed frame of a tool has an opaque origin.
  "cross-origin-resource-policy": "cross-origin",
};

worker.addEventListener("install", (event) => event.waitUntil(install()));
worker.addEventListener("activate", (event) => event.waitUntil(deleteOldVersions()));
worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const isOurs = [PAGE, ENGINE].some((folder) => request.url.startsWith(folder));
  if (request.method !== "GET" || !isOurs || request.url === LIST) return;
  event.respondWith(request.mode === "navigate" ? servePage(event) : serveFile(event));
});

async function install(): Promise<void> {
  const list = await fetchList();
  if (list === "unreachable" || list === "gone")
    throw new Error("the list of the page's files cannot be read");
  await cacheVersion(list);
  await worker.skipWaiting();
}

/**
 * Reads the server's list of files. Returns "gone" if the server no longer has a page, such as when it is another
 * program.
 */
async function fetchList(): Promise<PageList | "unreachable" | "gone"> {
  let answer: Response;
  try {
    answer = await fetch(LIST, { cache: "no-store", signal: AbortSignal.timeout(LIST_DEADLINE_MS) });
  } catch {
    return "unreachable";
  }
  if (answer.status >= 500) return "unreachable";
  try {
    const list: unknown = await answer.json();
    return answer.ok && isPageList(list) ? list : "gone";
  } catch {
    return "gone";
  }
}

function isPageList(list: unknown): list is PageList {
  return typeof list === "object" && list !== null && "version" in list && "files" in list;
}

async function servePage(event: FetchEvent): Promise<Response> {
  const { request } = event;
  const list = await fetchList();
  if (list === "gone") {
    await worker.registration.unregister();
    await deleteAllVersions();
    return await fetch(request);
  }
  // If caching fails, the next navigation tries again.
  if (list !== "unreachable") await ignoreFailure(cacheVersion(list));
  const version = await currentVersion();
  const { address, servers } = splitAddress(request.url);
  const cached =
    version === undefined ? undefined : await cachedFile(version, address.replace(/\/index\.html$/, "/"));
  if (!cached || version === undefined) return await fetch(request);
  await ignoreFailure(deleteOldVersions());
  await ignoreFailure(rememberClient(event.resultingClientId, version));
  const answer = withServerPolicy(withIsolation(cached), servers);
  // Without that header, the policy is in a meta element of the document.
  if (answer.headers.has("content-security-policy")) return answer;
  return new Response(withConnectSources(await answer.text(), servers), { headers: answer.headers });
}

async function serveFile({ request, clientId, resultingClientId }: FetchEvent): Promise<Response> {
  const { address, servers } = splitAddress(request.url);
  const version = await versionOf(clientId);
  if (version !== undefined) {
    // The response may start a worker.
    await ignoreFailure(rememberClient(resultingClientId, version));
    const cached = await cachedFile(version, address);
    if (cached) return withServerPolicy(withIsolation(cached), servers);
  }
  try {
    const answer = await fetch(request);
    if (version !== undefined && answer.status === 200 && address.startsWith(ENGINE))
      await ignoreFailure(cacheFile(version, address, answer.clone()));
    return withIsolation(answer);
  } catch (error) {
    const current = await currentVersion();
    const cached = current === undefined ? undefined : await cachedFile(current, address);
    if (!cached) throw error;
    return withServerPolicy(withIsolation(cached), servers);
  }
}

/** Splits a URL into the file's address and the servers in its query that the page or worker may connect to. */
function splitAddress(text: string): { readonly address: string; readonly servers: readonly string[] } {
  const url = new URL(text);
  const servers = parseOrigins(url.searchParams.get("connect") ?? "");
  url.searchParams.delete("connect");
  url.hash = "";
  const isValid = servers.length <= MAX_CONNECT_ORIGINS && servers.every(isConnectOrigin);
  return { address: url.href, servers: isValid ? servers : [] };
}

/** Adds servers to the Content-Security-Policy of a response. */
function withServerPolicy(answer: Response, servers: readonly string[]): Response {
  const policy = answer.headers.get("content-security-policy");
  if (policy === null || servers.length === 0) return answer;
  const headers = new Headers(answer.headers);
  headers.set("content-security-policy", withConnectSources(policy, servers));
  return new Response(answer.body, { status: answer.status, headers });
}

/** Adds the headers for cross-origin isolation, which shared memory needs. */
function withIsolation(answer: Response): Response {
  if (!answer.ok || answer.headers.has("cross-origin-embedder-policy")) return answer;
  const headers = new Headers({ ...Object.fromEntries(answer.headers), ...ISOLATION });
  // Browsers compile WebAssembly while it downloads only if it has this type, which some hosts do not send.
  if (new URL(answer.url).pathname.endsWith(".wasm")) headers.set("content-type", "application/wasm");
  return new Response(answer.body, { status: answer.status, headers });
}
