import { randomBytes } from "node:crypto";
import { onTestFinished } from "vitest";
import { DiskHubStore, type DiskHubStoreOptions } from "../../../../src/models/hub/disk-hub-store.ts";
import type { HubPullRequest, PullProgress } from "../../../../src/models/hub/hub-types.ts";
import type { HubSpec } from "../../../../src/models/names/hub-spec.ts";
import { startFixtureHub, type FixtureHub, type FixtureHubOptions } from "../../../support/fixture-hub.ts";

/** Pseudorandom bytes, which differ at every offset. */
export function content(size: number): Buffer {
  return randomBytes(size);
}

/** Starts a fixture hub that is stopped after the test. */
export async function fixtureHub(options: FixtureHubOptions): Promise<FixtureHub> {
  const hub = await startFixtureHub(options);
  onTestFinished(() => hub.close());
  return hub;
}

/** Creates a store that does not wait between attempts; `waits` collects the waits it skips. */
export function storeAt(
  cacheDir: string,
  hub: FixtureHub,
  options: Partial<DiskHubStoreOptions> = {},
): { store: DiskHubStore; waits: number[] } {
  const waits: number[] = [];
  const store = new DiskHubStore({
    cacheDir,
    hubUrl: hub.url,
    sleep: (ms, signal) => {
      signal.throwIfAborted();
      waits.push(ms);
      return Promise.resolve();
    },
    ...options,
  });
  return { store, waits };
}

export const SPEC: HubSpec = { owner: "ada", repo: "tiny-GGUF" };
export const REPO = "ada/tiny-GGUF";

interface PullOptions {
  readonly spec?: HubSpec;
  readonly projector?: HubPullRequest["projector"];
  readonly onProgress?: (progress: PullProgress) => void;
  readonly signal?: AbortSignal;
}

export function pull(store: DiskHubStore, options: PullOptions = {}) {
  const { spec = SPEC, projector, onProgress = () => {}, signal = new AbortController().signal } = options;
  return store.pull({ spec, projector }, onProgress, signal);
}

/** Returns the reason of a rejection; a promise that resolves fails the test. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("it should have failed");
}

/** Resolves when the progress has reached a number of bytes. */
export function untilBytes(wanted: number): {
  reached: Promise<void>;
  onProgress: (p: PullProgress) => void;
} {
  const { promise, resolve } = Promise.withResolvers<void>();
  const onProgress = (progress: PullProgress): void => {
    if (progress.status === "downloading" && progress.downloadedBytes >= wanted) resolve();
  };
  return { reached: promise, onProgress };
}
