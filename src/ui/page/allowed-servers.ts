import { z } from "zod";
import { isConnectOrigin, MAX_CONNECT_ORIGINS, parseOrigins } from "../../api/wire/page-policy.ts";
import { readStored } from "../browser.ts";
import { addedDaemons, isExported } from "../daemons.ts";

/**
 * Servers besides its own daemon that the page may connect to. They are in the page's address, from which the server
 * builds the Content-Security-Policy. A new server therefore requires a reload of the page.
 */

const STORAGE_KEY = "daybreak-servers";

/** Servers that the user has added, without daemons. */
function namedServers(): readonly string[] {
  return readStored(() => localStorage, STORAGE_KEY, z.array(z.string().refine(isConnectOrigin)), []);
}

function wantedServers(): readonly string[] {
  const all = [...namedServers(), ...addedDaemons().map(({ address }) => address)];
  return [...new Set(all)].filter((origin) => origin !== location.origin).toSorted();
}

/** True if the current policy lets the page connect to an origin. */
export function isAllowed(origin: string): boolean {
  return origin === location.origin || serversInAddress().includes(origin);
}

function serversInAddress(): readonly string[] {
  return parseOrigins(new URLSearchParams(location.search).get("connect") ?? "");
}

/**
 * Allows connections to servers. Reloads the page if its policy has to change.
 * @param origins such as http://127.0.0.1:3000
 * @throws Error with a message for the user if an origin is invalid or the policy cannot be changed
 */
export function allowServer(...origins: readonly string[]): void {
  const wrong = origins.find((origin) => !isConnectOrigin(origin));
  if (wrong !== undefined) throw new Error(`${wrong} is not an address such as http://127.0.0.1:3000.`);
  if (isExported && !navigator.serviceWorker?.controller) {
    throw new Error(
      "This page asks only the servers that its host has set, since this browser runs no service worker for it.",
    );
  }
  localStorage.setItem(STORAGE_KEY, JSON.stringify([...new Set([...namedServers(), ...origins])]));
  if (wantedServers().length > MAX_CONNECT_ORIGINS) {
    forgetServer(...origins);
    throw new Error(
      `A page may ask ${MAX_CONNECT_ORIGINS} servers at most. Remove one that you no longer use.`,
    );
  }
  updateAllowed();
}

/** Forbids connections to servers, from the next load of the page on. */
export function forgetServer(...origins: readonly string[]): void {
  localStorage.setItem(
    STORAGE_KEY,
    JSON.stringify(namedServers().filter((origin) => !origins.includes(origin))),
  );
}

/**
 * Makes the servers in the page's address those that the user has added. A link may have brought others.
 * @returns true if the page is being reloaded
 */
export function updateAllowed(): boolean {
  const servers = wantedServers().slice(0, MAX_CONNECT_ORIGINS);
  if (servers.join(" ") === serversInAddress().join(" ")) return false;
  const address = new URL(location.href);
  if (servers.length === 0) address.searchParams.delete("connect");
  else address.searchParams.set("connect", servers.join(" "));
  location.replace(address);
  return true;
}
