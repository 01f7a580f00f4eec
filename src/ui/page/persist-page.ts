import { signal } from "@preact/signals";
import { toError } from "../../errors/service-error.ts";
import { isExported } from "../daemons.ts";

/** Note of an exported page about its threads, or empty. */
export const threadNote = signal("");

/** Key in sessionStorage: marks that the page was reloaded to get threads, which is done only once. */
const RELOADED_KEY = "daybreak-reloaded";

/**
 * Installs the service worker, which caches the page so that it opens without its server. Threads need cross-origin
 * isolation. Static hosts do not send its headers, so the service worker adds them, from the next load on.
 */
export async function installServiceWorker(): Promise<void> {
  const isIsolated = globalThis.crossOriginIsolated;
  try {
    const registration = await register();
    if (!isExported || isIsolated) return;
    if (!registration) return explainOneThread("This browser runs no service worker for it.");
    if (sessionStorage.getItem(RELOADED_KEY) !== null)
      return explainOneThread("This browser does not isolate it from other pages.");
    threadNote.value =
      "The engine is being stored in this browser. Then the page loads again, once, to use all processors.";
    if (!(await isActivated(registration)))
      return explainOneThread("The page could not be stored in this browser.");
    sessionStorage.setItem(RELOADED_KEY, "yes");
    location.reload();
  } catch (error) {
    // A page served by a daemon works without the service worker.
    if (isExported && !isIsolated)
      explainOneThread(`Its service worker does not start: ${toError(error).message}`);
  }
}

async function register(): Promise<ServiceWorkerRegistration | undefined> {
  // Browsers support service workers only on localhost and over HTTPS.
  if (!("serviceWorker" in navigator)) return undefined;
  return await (isExported
    ? navigator.serviceWorker.register("sw.js")
    : navigator.serviceWorker.register("/ui/sw.js", { scope: "/" }));
}

function explainOneThread(why: string): void {
  threadNote.value = `Models run on one thread of this page, slowly. ${why}`;
}

async function isActivated(registration: ServiceWorkerRegistration): Promise<boolean> {
  const worker = registration.installing ?? registration.waiting ?? registration.active;
  if (!worker) return false;
  return await new Promise((resolve) => {
    const check = (): void => {
      if (worker.state === "activated") resolve(true);
      else if (worker.state === "redundant") resolve(false);
    };
    worker.addEventListener("statechange", check);
    check();
  });
}
