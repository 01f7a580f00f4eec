import { computed, signal as createSignal } from "@preact/signals";
import { toError } from "../../errors/service-error.ts";
import { models, refresh, showProblem } from "../page-state.ts";
import { discardPull, pullModel } from "./models-api.ts";
import { DownloadSpeed, runningPulls, storedPulls, storePulls } from "./stored-pulls.ts";

export interface Pull {
  /** Requested name: an alias or a hub spec. */
  readonly name: string;
  /** The state "elsewhere" marks a download that another tab or program has started. */
  readonly state: "running" | "paused" | "failed" | "done" | "elsewhere";
  /** Downloaded bytes. */
  readonly downloaded: number;
  /** Size in bytes; 0 if unknown. */
  readonly total: number;
  /** Bytes per second. */
  readonly speed?: number | undefined;
  /** Reason why no data arrives at the moment. */
  readonly note?: string | undefined;
  /** Reason of a failure. */
  readonly problem?: string | undefined;
  /** Name of the model after a complete download. */
  readonly model?: string | undefined;
}

/** The daemon may still list a stopped download for this long. */
const STOP_GRACE_MS = 2000;

const localPulls = createSignal<readonly Pull[]>([]);
const controllers = new Map<string, AbortController>();
/** Times at which downloads of this tab have stopped, by name. */
const stoppedAt = new Map<string, number>();
let isLeaving = false;

/** All downloads, including those of other tabs and programs. */
export const pulls = computed<readonly Pull[]>(() => {
  const running = new Set(
    localPulls.value.filter(({ state }) => state === "running").map(({ name }) => name),
  );
  const others = models.value
    .filter(({ progress }) => progress !== undefined)
    .filter(({ alias, from = "" }) => ![alias, from].some((name) => running.has(name) || isStopping(name)))
    .map(({ alias, from = alias, progress = 0, size_bytes: total = 0 }): Pull => {
      return { name: from, state: "elsewhere", downloaded: progress * total, total };
    });
  const otherNames = new Set(others.map(({ name }) => name));
  return [...localPulls.value.filter(({ name }) => !otherNames.has(name)), ...others];
});

function isStopping(name: string): boolean {
  return performance.now() - (stoppedAt.get(name) ?? Number.NEGATIVE_INFINITY) < STOP_GRACE_MS;
}

/** Starts or resumes a download. */
export async function startPull(name: string): Promise<void> {
  if (controllers.has(name)) return;
  const controller = new AbortController();
  controllers.set(name, controller);
  const { downloaded: stored, total: size } = findPull(name);
  setPull({ name, state: "running", downloaded: stored, total: size });
  const meter = new DownloadSpeed();
  try {
    for await (const line of pullModel(name, controller.signal)) {
      if (line.status === "success") setPull({ ...findPull(name), state: "done", model: line.model });
      else if (line.status === "verifying")
        setPull({ ...findPull(name), note: "Checking what has arrived …" });
      else {
        const { downloaded_bytes: downloaded = 0, total_bytes: total = 0, note } = line;
        meter.add(downloaded);
        setPull({ name, state: "running", downloaded, total, note, speed: meter.speed });
      }
    }
    if (findPull(name).state === "running")
      throw new Error("The daemon has ended the download without a reason.");
  } catch (error) {
    if (isLeaving) return;
    const { downloaded, total } = findPull(name);
    const problem = controller.signal.aborted ? undefined : toError(error).message;
    setPull({ name, state: problem === undefined ? "paused" : "failed", downloaded, total, problem });
  } finally {
    controllers.delete(name);
    stoppedAt.set(name, performance.now());
    await refresh();
    setTimeout(() => void refresh(), STOP_GRACE_MS);
  }
}

/** Stops a download. The partial file stays on disk. */
export function pausePull(name: string): void {
  controllers.get(name)?.abort();
}

/** Stops a download and deletes the partial file. */
export async function cancelPull(name: string): Promise<void> {
  try {
    pausePull(name);
    // A download that failed before its first byte has no partial file, and its name may not exist on the hub.
    if (findPull(name).downloaded > 0 || findPull(name).state !== "failed") await discardPull(name);
    forgetPull(name);
  } catch (error) {
    showProblem(error);
  }
}

/** Removes a finished download from the list. */
export function forgetPull(name: string): void {
  localPulls.value = localPulls.value.filter((each) => each.name !== name);
  savePulls();
}

function findPull(name: string): Pull {
  return (
    localPulls.value.find((each) => each.name === name) ?? { name, state: "running", downloaded: 0, total: 0 }
  );
}

function setPull(pull: Pull): void {
  const isNew = !localPulls.value.some(({ name }) => name === pull.name);
  const isChanged = findPull(pull.name).state !== pull.state;
  localPulls.value = isNew
    ? [...localPulls.value, pull]
    : localPulls.value.map((each) => (each.name === pull.name ? pull : each));
  if (isNew || isChanged) savePulls();
}

function savePulls(): void {
  const unfinished = localPulls.value.filter(({ state }) => state !== "done");
  const running = unfinished.filter(({ state }) => state === "running").map(({ name }) => name);
  storePulls(
    unfinished.map(({ name, downloaded, total, problem }) => ({ name, downloaded, total, problem })),
    running,
  );
}

/** Restores the downloads after a reload of the page, and resumes those that were running. */
function restorePulls(): void {
  localPulls.value = storedPulls().map(({ name, downloaded, total, problem }) => {
    const state = problem === undefined ? "paused" : "failed";
    return { name, state, downloaded, total, problem };
  });
  for (const name of runningPulls()) void startPull(name);
}

addEventListener("pagehide", () => {
  savePulls();
  isLeaving = true;
});
addEventListener("pageshow", () => (isLeaving = false));
restorePulls();
