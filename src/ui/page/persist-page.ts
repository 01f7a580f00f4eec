import { signal as value } from "@preact/signals";
import { toError } from "../../errors/to-error.ts";
import { isExported } from "../page-kind.ts";

/** What an exported page says about its threads; empty: nothing. */
export const threadNote = value("");

/** That an exported page was loaded again for its threads; more than once would not help. */
const RELOADED = "daybreak-reloaded";

/**
 * Keeps the page in the browser, so that it opens without its server. A host of static files does not isolate the page from
 * others, which threads need: there the service worker does, from the next load on.
 */
export async function keepPage(): Promise<void> {
  const isIsolated = globalThis.crossOriginIsolated;
  try {
    const registration = await register();
    if (!isExported || isIsolated) return;
    if (!registration) return tell("This browser runs no service worker for it.");
    if (sessionStorage.getItem(RELOADED) !== null)
      return tell("This browser does not isolate it from other pages.");
    threadNote.value =
      "The engine is being stored in this browser. Then the page loads again, once, to use all processors.";
    if (!(await isActivated(registration))) return tell("The page could not be stored in this browser.");
    sessionStorage.setItem(RELOADED, "yes");
    location.reload();
  } catch (error) {
    // A page of a daemon works without it.
    if (isExported && !isIsolated) tell(`Its service worker does not start: ${toError(error).message}`);
  }
}

async function register(): Promise<ServiceWorkerRegistration | undefined> {
  // Browsers have it on localhost and over HTTPS alone.
  if (!("serviceWorker" in navigator)) return undefined;
  return await (isExported
    ? navigator.serviceWorker.register("sw.js")
    : navigator.serviceWorker.register("/ui/sw.js", { scope: "/" }));
}

function tell(why: string): void {
  threadNote.value = `Models run on one thread of this page, slowly. ${why}`;
}

async function isActivated(registration: ServiceWorkerRegistration): Promise<boolean> {
  const worker = registration.installing ?? registration.waiting ?? registration.active;
  if (!worker) return false;
  return await new Promise((resolve) => {
    const look = (): void => {
      if (worker.state === "activated") resolve(true);
      else if (worker.state === "redundant") resolve(false);
    };
    worker.addEventListener("statechange", look);
    look();
  });
}
