import type { PageList } from "../../api/management/page-files.ts";
import { isOrigin, MAX_SERVERS, serversOf, withServers } from "../../api/management/page-policy.ts";
import {
  addressOf,
  currentVersion,
  type FetchEvent,
  forgetAll,
  forgetOld,
  ifPossible,
  keepFile,
  keepVersion,
  cachedFile,
  rememberClient,
  versionOf,
  worker,
} from "./cached-versions.ts";

/**
 * Keeps the page in the browser, so that it opens without its server. What the server has is asked for first: a new version
 * is kept as a whole before it is shown. Answers of the daemon's APIs are none of its business.
 */

/** The folder of the page; that of the engine may be beside it. */
const PAGE = new URL("./", worker.location.href).href;
const ENGINE = addressOf("browser/");
const LIST = new URL("files.json", PAGE).href;

/** A server that is there answers in milliseconds; nobody wants to wait longer for one that is not. */
const LIST_DEADLINE_MS = 3000;

/** Without these headers a page has no threads; hosts of static files do not send them. */
const ISOLATION = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
  // For the frame of a tool, which has no origin.
  "cross-origin-resource-policy": "cross-origin",
};

worker.addEventListener("install", (event) => event.waitUntil(install()));
worker.addEventListener("activate", (event) => event.waitUntil(forgetOld()));
worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const isOurs = [PAGE, ENGINE].some((folder) => request.url.startsWith(folder));
  if (request.method !== "GET" || !isOurs || request.url === LIST) return;
  event.respondWith(request.mode === "navigate" ? sendPage(event) : sendPart(event));
});

async function install(): Promise<void> {
  const list = await askList();
  if (list === "away" || list === "gone") throw new Error("the list of the page's files cannot be read");
  await keepVersion(list);
  await worker.skipWaiting();
}

/** What the server has; "gone" where another program has taken its place, or it has no page any longer. */
async function askList(): Promise<PageList | "away" | "gone"> {
  let answer: Response;
  try {
    answer = await fetch(LIST, { cache: "no-store", signal: AbortSignal.timeout(LIST_DEADLINE_MS) });
  } catch {
    return "away";
  }
  if (answer.status >= 500) return "away";
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

async function sendPage(event: FetchEvent): Promise<Response> {
  const { request } = event;
  const list = await askList();
  if (list === "gone") {
    await worker.registration.unregister();
    await forgetAll();
    return await fetch(request);
  }
  // A version that cannot be kept now is kept another time.
  if (list !== "away") await ifPossible(keepVersion(list));
  const version = await currentVersion();
  const { address, servers } = addressed(request.url);
  const kept =
    version === undefined ? undefined : await cachedFile(version, address.replace(/\/index\.html$/, "/"));
  if (!kept || version === undefined) return await fetch(request);
  await ifPossible(forgetOld());
  await ifPossible(rememberClient(event.resultingClientId, version));
  const answer = forServers(isolated(kept), servers);
  // Where there is no such header, the document has the policy.
  if (answer.headers.has("content-security-policy")) return answer;
  return new Response(withServers(await answer.text(), servers), { headers: answer.headers });
}

async function sendPart({ request, clientId, resultingClientId }: FetchEvent): Promise<Response> {
  const { address, servers } = addressed(request.url);
  const version = await versionOf(clientId);
  if (version !== undefined) {
    // A worker that the page starts.
    await ifPossible(rememberClient(resultingClientId, version));
    const kept = await cachedFile(version, address);
    if (kept) return forServers(isolated(kept), servers);
  }
  try {
    const answer = await fetch(request);
    if (version !== undefined && answer.status === 200 && address.startsWith(ENGINE))
      await ifPossible(keepFile(version, address, answer.clone()));
    return isolated(answer);
  } catch (error) {
    const current = await currentVersion();
    const kept = current === undefined ? undefined : await cachedFile(current, address);
    if (!kept) throw error;
    return forServers(isolated(kept), servers);
  }
}

/** The address of a file, and the servers that what it holds may ask, as its query says. */
function addressed(text: string): { readonly address: string; readonly servers: readonly string[] } {
  const url = new URL(text);
  const servers = serversOf(url.searchParams.get("connect") ?? "");
  url.searchParams.delete("connect");
  url.hash = "";
  const isValid = servers.length <= MAX_SERVERS && servers.every(isOrigin);
  return { address: url.href, servers: isValid ? servers : [] };
}

/** With the policy that belongs to its address. */
function forServers(answer: Response, servers: readonly string[]): Response {
  const policy = answer.headers.get("content-security-policy");
  if (policy === null || servers.length === 0) return answer;
  const headers = new Headers(answer.headers);
  headers.set("content-security-policy", withServers(policy, servers));
  return new Response(answer.body, { status: answer.status, headers });
}

/** Pages and workers share memory only if they come with these headers. */
function isolated(answer: Response): Response {
  if (!answer.ok || answer.headers.has("cross-origin-embedder-policy")) return answer;
  const headers = new Headers({ ...Object.fromEntries(answer.headers), ...ISOLATION });
  // Not every host knows it, and browsers compile it while it arrives only so.
  if (new URL(answer.url).pathname.endsWith(".wasm")) headers.set("content-type", "application/wasm");
  return new Response(answer.body, { status: answer.status, headers });
}
