import { z } from "zod";
import { isOrigin, MAX_SERVERS, serversOf } from "../../api/management/page-policy.ts";
import { addedDaemons } from "../daemons.ts";
import { isExported } from "../page-kind.ts";

/**
 * The servers besides its own daemon that the page may ask: its Content-Security-Policy has those that are in the page's
 * address, so that the page has to be loaded again when there is a new one.
 */

const PLACE = "daybreak-servers";

/** Those that a person has named, without daemons. */
function named(): readonly string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(PLACE) ?? "[]");
    return z.array(z.string().refine(isOrigin)).parse(kept);
  } catch {
    return [];
  }
}

function wanted(): readonly string[] {
  const all = [...named(), ...addedDaemons().map(({ address }) => address)];
  return [...new Set(all)].filter((origin) => origin !== location.origin).toSorted();
}

/** Whether the page may ask an origin now. */
export function mayAsk(origin: string): boolean {
  return origin === location.origin || inAddress().includes(origin);
}

function inAddress(): readonly string[] {
  return serversOf(new URLSearchParams(location.search).get("connect") ?? "");
}

/**
 * Lets the page ask another server from now on; loads the page again if it may not yet.
 * @param origins such as http://127.0.0.1:3000
 * @throws Error with a message for people when that cannot be
 */
export function allowServer(...origins: readonly string[]): void {
  const wrong = origins.find((origin) => !isOrigin(origin));
  if (wrong !== undefined) throw new Error(`${wrong} is not an address such as http://127.0.0.1:3000.`);
  if (isExported && !navigator.serviceWorker?.controller) {
    throw new Error(
      "This page asks only the servers that its host has set, since this browser runs no service worker for it.",
    );
  }
  localStorage.setItem(PLACE, JSON.stringify([...new Set([...named(), ...origins])]));
  if (wanted().length > MAX_SERVERS) {
    forgetServer(...origins);
    throw new Error(`A page may ask ${MAX_SERVERS} servers at most. Remove one that you no longer use.`);
  }
  keepAllowed();
}

/** Lets the page no longer ask servers, from its next load on. */
export function forgetServer(...origins: readonly string[]): void {
  localStorage.setItem(PLACE, JSON.stringify(named().filter((origin) => !origins.includes(origin))));
}

/**
 * Makes sure that the page's address has the servers that its user has named, and no others that came with a link.
 * @returns whether the page is being loaded again
 */
export function keepAllowed(): boolean {
  const servers = wanted().slice(0, MAX_SERVERS);
  if (servers.join(" ") === inAddress().join(" ")) return false;
  const address = new URL(location.href);
  if (servers.length === 0) address.searchParams.delete("connect");
  else address.searchParams.set("connect", servers.join(" "));
  location.replace(address);
  return true;
}
