import { z } from "zod";
import { isOrigin } from "../api/management/page-policy.ts";
import { tryJson } from "../json/json-values.ts";
import { isExported } from "./page-kind.ts";

/** The daemons that this page may use, kept in the browser. */

const PLACE = "daybreak-daemons";
/** Keys for as long as the tab is open. */
const SESSION_PLACE = "daybreak-keys";
/** The choice of no daemon at all. */
const NONE = "none";

const keysSchema = z.record(z.string(), z.string());

const keptSchema = z.object({
  chosen: z.string().optional(),
  added: z.array(z.object({ address: z.string().refine(isOrigin), name: z.string() })),
  keys: keysSchema,
});
type Kept = z.output<typeof keptSchema>;

const NOTHING: Kept = { added: [], keys: {} };

export interface Daemon {
  /** Its origin, such as http://127.0.0.1:8080. */
  readonly address: string;
  readonly name: string;
}

/** The daemon that serves this page; undefined: an exported page. */
export const ownDaemon: Daemon | undefined = isExported
  ? undefined
  : { address: location.origin, name: location.host };

/** All that can be chosen. */
export function knownDaemons(): readonly Daemon[] {
  return [...(ownDaemon ? [ownDaemon] : []), ...addedDaemons()];
}

/** Those that a person has named; an exported page has none. */
export function addedDaemons(): readonly Daemon[] {
  return isExported ? [] : read().added.filter(({ address }) => address !== location.origin);
}

/** Undefined: this page runs models in the browser alone. */
export function chosenDaemon(): Daemon | undefined {
  const { chosen } = read();
  if (chosen === NONE) return undefined;
  return knownDaemons().find(({ address }) => address === chosen) ?? ownDaemon;
}

/** @param address undefined: none */
export function chooseDaemon(address: string | undefined): void {
  write({ ...read(), chosen: address ?? NONE });
}

/**
 * Adds a daemon, or names it anew.
 * @param text its address as a person writes it, such as box:8080
 * @throws Error when that is no address
 */
export function addDaemon(text: string, name: string): Daemon {
  const address = originOf(text);
  const daemon = { address, name: name.trim() || new URL(address).host };
  const kept = read();
  write({ ...kept, added: [...kept.added.filter((each) => each.address !== address), daemon] });
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
  keepForSession(address, undefined);
}

function originOf(text: string): string {
  const trimmed = text.trim();
  const whole = /^https?:\/\//i.test(trimmed) ? trimmed : `http://${trimmed}`;
  const origin = URL.canParse(whole) ? new URL(whole).origin : "";
  if (!isOrigin(origin))
    throw new Error(`${trimmed} is not the address of a daemon, such as http://box:8080.`);
  const { protocol, hostname } = new URL(origin);
  const isHere = /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(hostname);
  if (location.protocol === "https:" && protocol === "http:" && !isHere) {
    throw new Error(
      `This page was opened over HTTPS, so its browser lets it ask ${origin} over HTTPS only. Open the page of a daemon over HTTP, or put TLS in front of that one.`,
    );
  }
  return origin;
}

export function keyOf(address: string): string | undefined {
  return readSession()[address] ?? read().keys[address];
}

/** @param forSession forget the key with the tab */
export function keepKey(address: string, key: string, forSession: boolean): void {
  const kept = read();
  const { [address]: _before, ...others } = kept.keys;
  write({ ...kept, keys: forSession ? others : { ...others, [address]: key } });
  keepForSession(address, forSession ? key : undefined);
}

function keepForSession(address: string, key: string | undefined): void {
  const { [address]: _before, ...others } = readSession();
  const keys = key === undefined ? others : { ...others, [address]: key };
  sessionStorage.setItem(SESSION_PLACE, JSON.stringify(keys));
}

function readSession(): Readonly<Record<string, string>> {
  return keysSchema.safeParse(tryJson(sessionStorage.getItem(SESSION_PLACE) ?? "")).data ?? {};
}

function read(): Kept {
  return keptSchema.safeParse(tryJson(localStorage.getItem(PLACE) ?? "")).data ?? NOTHING;
}

function write(kept: Kept): void {
  localStorage.setItem(PLACE, JSON.stringify(kept));
}
