import { computed, signal as value } from "@preact/signals";
import type { JSX } from "preact";
import { moment } from "./format.ts";
import { events, type PastEvent } from "./monitor-state.ts";

/** As many as need no scrolling; the others are behind a button. */
const SHOWN = 3;

const WORDS: Readonly<Record<PastEvent["type"], string>> = {
  "model-downloaded": "downloaded",
  "model-loaded": "loaded",
  "model-unloaded": "unloaded",
  "model-failed": "failed",
  "model-deleted": "deleted",
  "model-created": "created",
  "batch-created": "created",
  "batch-ended": "ended",
  "engine-restarted": "started again after a crash",
  "gpu-lost": "lost the GPU",
  "gpu-abandoned": "runs on the CPU instead of the GPU",
};
const UNLOAD_REASONS: Readonly<Record<string, string>> = {
  request: "as requested",
  idle: "idle for too long",
  memory: "to make room for another model",
  shutdown: "the daemon ends",
};
const BAD: ReadonlySet<PastEvent["type"]> = new Set([
  "model-failed",
  "engine-restarted",
  "gpu-lost",
  "gpu-abandoned",
]);

/** The number of the last problem that a person has seen. */
const seen = value(0);

const problems = computed(() =>
  events.value.filter(({ type, number }) => BAD.has(type) && number > seen.value).toReversed(),
);

/** Crashes and losses with their reason, and all that happened to models and batches. */
export function Incidents(): JSX.Element {
  const [shown, rest] = [problems.value.slice(0, SHOWN), problems.value.slice(SHOWN)];
  const [newest] = problems.value;
  return (
    <section aria-labelledby="incidents-title">
      <h2 id="incidents-title">Crashes and losses</h2>
      <div id="incidents" role="log" aria-labelledby="incidents-title">
        {newest ? <List events={shown} /> : <p class="calm">✓ Nothing has crashed, and no GPU was lost.</p>}
        {rest.length > 0 && (
          <details>
            <summary>{rest.length} more</summary>
            <List events={rest} />
          </details>
        )}
      </div>
      {newest && (
        <button type="button" onClick={() => (seen.value = newest.number)}>
          Mark as seen
        </button>
      )}
      <details id="events">
        <summary>All events of models and batches ({events.value.length})</summary>
        <div class="scrolling" tabIndex={0} role="region" aria-label="All events of models and batches">
          <List events={events.value.toReversed()} />
        </div>
      </details>
    </section>
  );
}

function List({ events: list }: { readonly events: readonly PastEvent[] }): JSX.Element {
  return (
    <ul class="happened">
      {list.map((event) => (
        <li key={event.number} class={BAD.has(event.type) ? "bad" : ""}>
          <time dateTime={event.time}>{moment(event.time)}</time>
          <span>
            <strong>{event.model ?? event.batch}</strong> {wordsOf(event)}
          </span>
        </li>
      ))}
    </ul>
  );
}

function wordsOf({ type, reason, message, code, status }: PastEvent): string {
  const why =
    message ??
    status ??
    (type === "model-unloaded" ? (UNLOAD_REASONS[reason ?? ""] ?? reason) : reason) ??
    "";
  const what = type === "model-failed" && code === "engine_crashed" ? "crashed" : WORDS[type];
  return why === "" ? what : `${what}: ${why}`;
}
