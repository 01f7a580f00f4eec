import { computed, signal as signalsValue } from "@preact/signals";
import type { ActivityReport } from "../../api/management/activity-schemas.ts";
import { toError } from "../../errors/to-error.ts";
import { request } from "../daemon-api.ts";
import {
  type Engine,
  type Fleet,
  readActivity,
  readEngines,
  readFleet,
  readMetrics,
  readStatus,
  type Status,
} from "./monitor-api.ts";
import { type FirstToken, type Sample, SAMPLE_MS, SampleHistory } from "./samples.ts";

export type PastRequest = ActivityReport["requests"][number];
export type PastEvent = ActivityReport["events"][number];
export type PastLog = ActivityReport["logs"][number];

/** As many as the daemon remembers of each; a page that is open for days must not grow. */
const MAX_REQUESTS = 500;
const MAX_EVENTS = 200;
const MAX_LOGS = 800;
/** Engines, the machine and its fleet are looked at with each so-manieth sample: each look is a line in the daemon's log. */
const STATE_EVERY = 3;

/** What the room shows; every part of it reads these. All lists have the oldest first. */
export const samples = signalsValue<readonly Sample[]>([]);
export const engines = signalsValue<readonly Engine[]>([]);
export const status = signalsValue<Status | undefined>(undefined);
export const fleet = signalsValue<Fleet | undefined>(undefined);
/** Speed of each model's last answer, in tokens per second. */
export const speeds = signalsValue<ReadonlyMap<string, number>>(new Map());
export const gpuFailures = signalsValue({ losses: 0, abandonments: 0 });
export const requests = signalsValue<readonly PastRequest[]>([]);
export const events = signalsValue<readonly PastEvent[]>([]);
export const logs = signalsValue<readonly PastLog[]>([]);
/** Why the daemon cannot be looked at; empty: it can. */
export const trouble = signalsValue("");
/** Events come as they happen. */
export const isLive = signalsValue(false);

export const firstTokens = computed((): readonly FirstToken[] =>
  requests.value.flatMap(({ time, first_token_ms: ms }) =>
    ms === undefined ? [] : [{ at: (Date.parse(time) + ms) / 1000, seconds: ms / 1000 }],
  ),
);

const history = new SampleHistory();
/** The number of the last thing that is known to have happened. */
let known = 0;
/** Aborts what is under way; undefined: the room looks at nothing. */
let watching: AbortController | undefined;
let stream: EventStream | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Looks at the daemon while the page is visible, until the function that it returns is called. */
export function watch(): () => void {
  document.addEventListener("visibilitychange", beginOrRest);
  beginOrRest();
  return () => {
    document.removeEventListener("visibilitychange", beginOrRest);
    monitorStateRest();
  };
}

function beginOrRest(): void {
  if (document.hidden) monitorStateRest();
  else begin();
}

function begin(): void {
  if (watching) return;
  const controller = new AbortController();
  watching = controller;
  stream = new EventStream(
    () => void catchUp(controller.signal),
    (isOpen) => (isLive.value = isOpen),
  );
  void sample(controller.signal, 0);
}

function monitorStateRest(): void {
  watching?.abort();
  watching = undefined;
  stream?.close();
  stream = undefined;
  clearTimeout(timer);
}

async function sample(signal: AbortSignal, round: number): Promise<void> {
  try {
    const [metrics, activity] = await Promise.all([
      readMetrics(signal),
      readActivity(known, signal),
      round % STATE_EVERY === 0 && readState(signal),
    ]);
    history.add(Date.now() / 1000, metrics);
    samples.value = history.samples;
    speeds.value = metrics.by("service_tokens_per_second", "model");
    gpuFailures.value = {
      losses: metrics.value("service_gpu_losses_total"),
      abandonments: metrics.value("service_gpu_abandonments_total"),
    };
    remember(activity);
    trouble.value = "";
  } catch (error) {
    if (!signal.aborted) trouble.value = toError(error).message;
  }
  if (!signal.aborted) timer = setTimeout(() => void sample(signal, round + 1), SAMPLE_MS);
}

async function readState(signal: AbortSignal): Promise<void> {
  const [list, read, machines] = await Promise.all([
    readEngines(signal),
    readStatus(signal),
    readFleet(signal),
  ]);
  engines.value = list;
  status.value = read;
  fleet.value = machines;
}

/** Reads what has just happened, without waiting for the next sample. */
async function catchUp(signal: AbortSignal): Promise<void> {
  try {
    const [activity] = await Promise.all([readActivity(known, signal), readState(signal)]);
    remember(activity);
  } catch {
    // The next sample tells what is wrong.
  }
}

/** Two answers may overlap. */
function remember(activity: ActivityReport): void {
  if (activity.next <= known) return;
  const fresh = <Entry extends { readonly number: number }>(list: readonly Entry[]): readonly Entry[] =>
    list.filter(({ number }) => number > known);
  const more = {
    requests: fresh(activity.requests),
    events: fresh(activity.events),
    logs: fresh(activity.logs),
  };
  if (more.requests.length > 0) requests.value = [...requests.value, ...more.requests].slice(-MAX_REQUESTS);
  if (more.events.length > 0) events.value = [...events.value, ...more.events].slice(-MAX_EVENTS);
  if (more.logs.length > 0) logs.value = [...logs.value, ...more.logs].slice(-MAX_LOGS);
  known = activity.next;
}

const RETRY_MS = 3000;

/** Listens to /api/events of the chosen daemon until it is closed, connecting again whenever the stream breaks. */
class EventStream {
  readonly #onEvent: () => void;
  readonly #onState: (isOpen: boolean) => void;
  readonly #controller = new AbortController();

  constructor(onEvent: () => void, onState: (isOpen: boolean) => void) {
    this.#onEvent = onEvent;
    this.#onState = onState;
    void this.#listen();
  }

  close(): void {
    this.#controller.abort();
    this.#onState(false);
  }

  async #listen(): Promise<void> {
    const { signal } = this.#controller;
    while (!signal.aborted) {
      // The page says by itself that a daemon is away.
      await this.#read(signal).catch(() => undefined);
      if (signal.aborted) return;
      this.#onState(false);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  /** An EventSource could send no API key. */
  async #read(signal: AbortSignal): Promise<void> {
    const answer = await request("/api/events", { signal, headers: { accept: "text/event-stream" } });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    if (!reader) return;
    this.#onState(true);
    // Something may have happened while nobody listened.
    this.#onEvent();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      // Heartbeats are comments.
      if (lines.some((line) => line.startsWith("event:"))) this.#onEvent();
    }
  }
}
