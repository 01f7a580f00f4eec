import { z } from "zod";
import { isConnectOrigin } from "../api/wire/page-policy.ts";
import { readStored } from "./browser.ts";

/** `daybreak ui export` marks the page as exported: it is served by a static host without a daemon. */

export const isExported = metaContent("daybreak-exported") !== undefined;

/** Address of the hub for an exported page; undefined for the default hub. */
export const exportedHub = metaContent("daybreak-hub");

function metaContent(name: string): string | undefined {
  return document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content;
}

/** Daemons that this page may use. They and their API keys are in localStorage. */

const STORAGE_KEY = "daybreak-daemons";
/** API keys in sessionStorage, which ends with the tab. */
const SESSION_STORAGE_KEY = "daybreak-keys";
/** Stored choice of the user who runs models in the browser only. */
const NO_DAEMON = "none";

const keysSchema = z.record(z.string(), z.string());

const storedSchema = z.object({
  chosen: z.string().optional(),
  added: z.array(z.object({ address: z.string().refine(isConnectOrigin), name: z.string() })),
  keys: keysSchema,
});
type StoredDaemons = z.output<typeof storedSchema>;

export interface Daemon {
  /** Origin, such as http://127.0.0.1:8080. */
  readonly address: string;
  readonly name: string;
}

/** The daemon that serves this page; undefined for an exported page. */
export const servingDaemon: Daemon | undefined = isExported
  ? undefined
  : { address: location.origin, name: location.host };

/** Daemons that the user can choose. */
export function knownDaemons(): readonly Daemon[] {
  return [...(servingDaemon ? [servingDaemon] : []), ...addedDaemons()];
}

/** Daemons that the user added; none for an exported page. */
export function addedDaemons(): readonly Daemon[] {
  return isExported ? [] : read().added.filter(({ address }) => address !== location.origin);
}

/** Returns the chosen daemon, or undefined if models run in the browser only. */
export function chosenDaemon(): Daemon | undefined {
  const { chosen } = read();
  if (chosen === NO_DAEMON) return undefined;
  return knownDaemons().find(({ address }) => address === chosen) ?? servingDaemon;
}

/** @param address undefined to run models in the browser only */
export function chooseDaemon(address: string | undefined): void {
  write({ ...read(), chosen: address ?? NO_DAEMON });
}

/**
 * Adds a daemon, or renames it.
 * @param text address as typed, such as box:8080
 * @throws Error if the address is invalid
 */
export function addDaemon(text: string, name: string): Daemon {
  const address = parseOrigin(text);
  const daemon = { address, name: name.trim() || new URL(address).host };
  const stored = read();
  write({ ...stored, added: [...stored.added.filter((each) => each.address !== address), daemon] });
  return daemon;
}

export function removeDaemon(address: string): void {
  const { added, keys, chosen } = read();
  const { [address]: _key, ...others } = keys;
  write({
    added: added.filter((each) => each.address !== address),
    keys: others,
    ...(chosen !== undefined && chosen !== address && { chosen }),
  });
  saveForSession(address, undefined);
}

function parseOrigin(text: string): string {
  const trimmed = text.trim();
  const withScheme = /^https?:\/\//i.test(trimmed) ? trimmed : `http://${trimmed}`;
  const origin = URL.canParse(withScheme) ? new URL(withScheme).origin : "";
  if (!isConnectOrigin(origin))
    throw new Error(`${trimmed} is not the address of a daemon, such as http://box:8080.`);
  const { protocol, hostname } = new URL(origin);
  const isLoopback = /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(hostname);
  if (location.protocol === "https:" && protocol === "http:" && !isLoopback) {
    throw new Error(
      `This page was opened over HTTPS, so its browser lets it ask ${origin} over HTTPS only. Open the page of a daemon over HTTP, or put TLS in front of that one.`,
    );
  }
  return origin;
}

export function keyOf(address: string): string | undefined {
  return readSession()[address] ?? read().keys[address];
}

/** @param forSession store the key only until the tab is closed */
export function saveKey(address: string, key: string, forSession: boolean): void {
  const stored = read();
  const { [address]: _before, ...others } = stored.keys;
  write({ ...stored, keys: forSession ? others : { ...others, [address]: key } });
  saveForSession(address, forSession ? key : undefined);
}

function saveForSession(address: string, key: string | undefined): void {
  const { [address]: _before, ...others } = readSession();
  const keys = key === undefined ? others : { ...others, [address]: key };
  sessionStorage.setItem(SESSION_STORAGE_KEY, JSON.stringify(keys));
}

function readSession(): Readonly<Record<string, string>> {
  return readStored(() => sessionStorage, SESSION_STORAGE_KEY, keysSchema, {});
}

function read(): StoredDaemons {
  return readStored(() => localStorage, STORAGE_KEY, storedSchema, { added: [], keys: {} });
}

function write(stored: StoredDaemons): void {
  localStorage.setItem(STORAGE_KEY, JSON.stringify(stored));
}
