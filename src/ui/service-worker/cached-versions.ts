import type { PageList } from "../../api/management/page-files.ts";

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- this is a service worker
export const worker = globalThis as unknown as WorkerScope;

/**
 * The versions of the page that this browser keeps: each has a cache with all its files, so that a page never gets files of
 * two versions. A page goes on with the version that it began with.
 */

const { scope } = worker.registration;
/** An origin may have several exported pages. */
const PREFIX = `daybreak ${scope} `;
/** Has which version is the newest, and which one each page began with. */
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
 * Keeps all files of a version, unless they are.
 * @throws Error when a file cannot be had, or is another one than the list says: then nothing has changed
 */
export async function keepVersion(list: PageList): Promise<void> {
  const { version } = list;
  if ((await currentVersion()) === version) return;
  const name = cacheName(version);
  const before = await keptBefore();
  const cache = await caches.open(name);
  try {
    await Promise.all(
      list.files.map(async ({ path, sha256 }) => {
        const address = addressOf(path);
        const kept = before.get(sha256);
        await cache.put(address, kept ? await kept() : await download(address, sha256));
      }),
    );
    await cache.put(LIST, Response.json(list));
    await note(CURRENT, version);
  } catch (error) {
    await caches.delete(name);
    throw error;
  }
}

/** How to get the files of the newest version, by their hashes. */
async function keptBefore(): Promise<Map<string, () => Promise<Response>>> {
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

/** A file of a version, by its whole address. */
export async function cachedFile(version: string, address: string): Promise<Response | undefined> {
  return await (await caches.open(cacheName(version))).match(address);
}

/** Keeps a file that the list leaves out, as browsers differ in what they need. */
export async function keepFile(version: string, address: string, answer: Response): Promise<void> {
  await (await caches.open(cacheName(version))).put(address, answer);
}

export async function currentVersion(): Promise<string | undefined> {
  return await noted(CURRENT);
}

/** The version with which a page or a worker began; undefined: it came from the server. */
export async function versionOf(client: string): Promise<string | undefined> {
  return client === "" ? undefined : await noted(clientNote(client));
}

export async function rememberClient(client: string, version: string): Promise<void> {
  if (client !== "") await note(clientNote(client), version);
}

/** Forgets pages that are closed, and versions that no page has. */
export async function forgetOld(): Promise<void> {
  const clients = await worker.clients.matchAll({ includeUncontrolled: true, type: "all" });
  const open = new Set(clients.map(({ id }) => clientNote(id)));
  const notes = await caches.open(NOTES);
  const used = new Set<string>();
  for (const { url } of await notes.keys()) {
    if (url !== CURRENT && !open.has(url)) await notes.delete(url);
    else used.add(cacheName((await noted(url)) ?? ""));
  }
  for (const name of await caches.keys())
    if (name.startsWith(cacheName("")) && !used.has(name)) await caches.delete(name);
}

export async function forgetAll(): Promise<void> {
  for (const name of await caches.keys()) if (name.startsWith(PREFIX)) await caches.delete(name);
}

function clientNote(client: string): string {
  return new URL(`client/${client}`, scope).href;
}

async function note(key: string, text: string): Promise<void> {
  await (await caches.open(NOTES)).put(key, new Response(text));
}

/** Does what the page can go without, such as when the browser has no space. */
export async function ifPossible(work: Promise<unknown>): Promise<void> {
  await work.catch(() => undefined);
}

async function noted(key: string): Promise<string | undefined> {
  return await (await (await caches.open(NOTES)).match(key))?.text();
}

/** The part of a service worker's global scope that is used; TypeScript has it in a library that excludes a page's. */

interface ExtendableEvent extends Event {
  waitUntil(work: Promise<unknown>): void;
}

export interface FetchEvent extends ExtendableEvent {
  readonly request: Request;
  /** Of the page or worker that asks; empty for a navigation. */
  readonly clientId: string;
  /** Of the page or worker that the answer makes; empty where it makes none. */
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
