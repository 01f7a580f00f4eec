import type { PageList } from "../../api/wire/page-files.ts";

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- this is a service worker
export const worker = globalThis as unknown as WorkerScope;

/**
 * Cached versions of the page. Each version has a cache with all its files, so that a page never loads files of two
 * versions. An open page stays on the version that it was loaded with.
 */

const { scope } = worker.registration;
/** The scope is part of all cache names, since an origin may have several exported pages. */
const PREFIX = `daybreak ${scope} `;
/** Cache that stores the newest version and the version of each open page. */
const NOTES = `${PREFIX}notes`;
const CURRENT = new URL("current", scope).href;
const LIST = new URL("list", scope).href;

export function addressOf(path: string): string {
  return new URL(path, scope).href;
}

function cacheName(version: string): string {
  return `${PREFIX}version ${version}`;
}

/**
 * Caches all files of a version, unless it is cached already.
 * @throws Error if a file cannot be downloaded or has another hash; nothing changes then
 */
export async function cacheVersion(list: PageList): Promise<void> {
  const { version } = list;
  if ((await currentVersion()) === version) return;
  const name = cacheName(version);
  const before = await currentFiles();
  const cache = await caches.open(name);
  try {
    await Promise.all(
      list.files.map(async ({ path, sha256 }) => {
        const address = addressOf(path);
        const readCached = before.get(sha256);
        await cache.put(address, readCached ? await readCached() : await download(address, sha256));
      }),
    );
    await cache.put(LIST, Response.json(list));
    await writeNote(CURRENT, version);
  } catch (error) {
    await caches.delete(name);
    throw error;
  }
}

/** Returns functions that read the files of the current version, by hash. */
async function currentFiles(): Promise<Map<string, () => Promise<Response>>> {
  const version = await currentVersion();
  if (version === undefined) return new Map();
  const cache = await caches.open(cacheName(version));
  const answer = await cache.match(LIST);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written above
  const list = (await answer?.json()) as PageList | undefined;
  return new Map(
    (list?.files ?? []).map(({ path, sha256 }) => [
      sha256,
      async () => (await cache.match(addressOf(path))) ?? (await download(addressOf(path), sha256)),
    ]),
  );
}

async function download(address: string, sha256: string): Promise<Response> {
  const answer = await fetch(address, { cache: "no-cache" });
  if (!answer.ok) throw new Error(`${address}: status ${answer.status}`);
  const bytes = await answer.clone().arrayBuffer();
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const hash = [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  if (hash !== sha256) throw new Error(`${address} is of another version`);
  return answer;
}

/** Returns a cached file of a version by its full address. */
export async function cachedFile(version: string, address: string): Promise<Response | undefined> {
  return await (await caches.open(cacheName(version))).match(address);
}

/** Caches a file that is not in the list, since only some browsers need it. */
export async function cacheFile(version: string, address: string, answer: Response): Promise<void> {
  await (await caches.open(cacheName(version))).put(address, answer);
}

export async function currentVersion(): Promise<string | undefined> {
  return await readNote(CURRENT);
}

/** Returns the version that a page or worker was loaded with; undefined if it came from the server. */
export async function versionOf(client: string): Promise<string | undefined> {
  return client === "" ? undefined : await readNote(clientNote(client));
}

export async function rememberClient(client: string, version: string): Promise<void> {
  if (client !== "") await writeNote(clientNote(client), version);
}

/** Deletes the notes of closed pages, and versions that no page uses. */
export async function deleteOldVersions(): Promise<void> {
  const clients = await worker.clients.matchAll({ includeUncontrolled: true, type: "all" });
  const open = new Set(clients.map(({ id }) => clientNote(id)));
  const notes = await caches.open(NOTES);
  const used = new Set<string>();
  for (const { url } of await notes.keys()) {
    if (url !== CURRENT && !open.has(url)) await notes.delete(url);
    else used.add(cacheName((await readNote(url)) ?? ""));
  }
  for (const name of await caches.keys())
    if (name.startsWith(cacheName("")) && !used.has(name)) await caches.delete(name);
}

export async function deleteAllVersions(): Promise<void> {
  for (const name of await caches.keys()) if (name.startsWith(PREFIX)) await caches.delete(name);
}

function clientNote(client: string): string {
  return new URL(`client/${client}`, scope).href;
}

async function writeNote(key: string, text: string): Promise<void> {
  await (await caches.open(NOTES)).put(key, new Response(text));
}

/** Ignores the failure of optional work, such as writing to a full cache. */
export async function ignoreFailure(work: Promise<unknown>): Promise<void> {
  await work.catch(() => undefined);
}

async function readNote(key: string): Promise<string | undefined> {
  return await (await (await caches.open(NOTES)).match(key))?.text();
}

/** Types of a service worker. TypeScript's library for workers cannot be combined with the one for pages. */

interface ExtendableEvent extends Event {
  waitUntil(work: Promise<unknown>): void;
}

export interface FetchEvent extends ExtendableEvent {
  readonly request: Request;
  /** ID of the page or worker that sent the request; empty for a navigation. */
  readonly clientId: string;
  /** ID of the page or worker that is created from the response; empty for other files. */
  readonly resultingClientId: string;
  respondWith(answer: Promise<Response>): void;
}

interface WorkerScope {
  readonly registration: { readonly scope: string; unregister(): Promise<boolean> };
  readonly clients: {
    matchAll(options: {
      includeUncontrolled: true;
      type: "all";
    }): Promise<readonly { readonly id: string }[]>;
  };
  readonly location: { readonly href: string };
  skipWaiting(): Promise<void>;
  addEventListener(type: "install" | "activate", listener: (event: ExtendableEvent) => void): void;
  addEventListener(type: "fetch", listener: (event: FetchEvent) => void): void;
}
