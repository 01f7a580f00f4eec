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

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- this is a service worker
export const worker = globalThis as unknown as WorkerScope;
