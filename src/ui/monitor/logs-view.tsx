import { computed, signal } from "@preact/signals";
import type { JSX } from "preact";
import { LOG_LEVELS, type LogLevel } from "../../api/wire/activity.ts";
import { Button, bound } from "../controls.tsx";
import { isRecord } from "../../json/json-values.ts";
import { formatTime } from "../../json/quantities.ts";
import { events, logs, type PastEvent, type PastLog } from "./monitor-state.ts";

/** Maximum number of visible log records. */
const MAX_ROWS = 200;

const level = signal<LogLevel>("info");
const text = signal("");
/** The records at the time when the user paused the view; undefined while it is live. */
const paused = signal<readonly PastLog[] | undefined>(undefined);

const filteredLogs = computed(() => {
  const minLevel = LOG_LEVELS.indexOf(level.value);
  const words = text.value.trim().toLowerCase();
  return (paused.value ?? logs.value)
    .filter((each) => LOG_LEVELS.indexOf(each.level) >= minLevel)
    .filter((each) => `${each.message}\n${formatFields(each)}`.toLowerCase().includes(words))
    .slice(-MAX_ROWS)
    .toReversed();
});

/** The last records of the daemon's log, newest first. */
export function LogsView(): JSX.Element {
  const newCount = paused.value ? logs.value.length - paused.value.length : 0;
  return (
    <section aria-labelledby="logs-title">
      <h2 id="logs-title">Log</h2>
      <p class="fields">
        <label>
          From level{" "}
          <select
            id="log-level"
            value={level.value}
            onChange={({ currentTarget }) =>
              (level.value = LOG_LEVELS.find((each) => each === currentTarget.value) ?? "info")
            }
          >
            {LOG_LEVELS.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <label>
          With the words <input id="log-filter" type="search" {...bound(text)} />
        </label>
        <Button
          id="log-pause"
          aria-pressed={paused.value !== undefined}
          onClick={() => (paused.value = paused.value ? undefined : logs.value)}
        >
          {paused.value ? `Paused${newCount > 0 ? `, ${newCount} new` : ""}` : "Pause"}
        </Button>
      </p>
      <div class="scrolling" tabIndex={0} role="region" aria-label="Records of the log">
        <ol id="logs">
          {filteredLogs.value.map((each) => (
            <LogLine key={each.number} log={each} />
          ))}
        </ol>
      </div>
      {filteredLogs.value.length === 0 && <p>The log has no such record.</p>}
    </section>
  );
}

function LogLine({ log }: { readonly log: PastLog }): JSX.Element {
  const stack = stackOf(log);
  return (
    <li class={log.level}>
      <time dateTime={log.time}>{formatTime(log.time)}</time> <span class="level">{log.level}</span>{" "}
      <span class="message">{log.message}</span> <span class="log-fields">{formatFields(log)}</span>
      {stack !== undefined && (
        <details>
          <summary>Where it happened</summary>
          <pre>{stack}</pre>
        </details>
      )}
    </li>
  );
}

/** Formats the fields of a record. Of an error, only the message: the view shows its stack separately. */
function formatFields({ fields }: PastLog): string {
  return Object.entries(fields)
    .map(([name, field]) => {
      if (name === "err" && isError(field)) return `${name}=${field.message}`;
      return `${name}=${typeof field === "string" ? field : JSON.stringify(field)}`;
    })
    .join(" ");
}

function stackOf({ fields: { err } }: PastLog): string | undefined {
  return isError(err) && typeof err.stack === "string" ? err.stack : undefined;
}

function isError(field: unknown): field is { message: string; stack?: unknown } {
  return isRecord(field) && typeof field["message"] === "string";
}

/** Incidents that are visible without a click. */
const MAX_VISIBLE = 3;

const EVENT_LABELS: Readonly<Record<PastEvent["type"], string>> = {
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
const PROBLEM_TYPES: ReadonlySet<PastEvent["type"]> = new Set([
  "model-failed",
  "engine-restarted",
  "gpu-lost",
  "gpu-abandoned",
]);

/** Number of the last incident that the user marked as seen. */
const lastSeenNumber = signal(0);

const problems = computed(() =>
  events.value
    .filter(({ type, number }) => PROBLEM_TYPES.has(type) && number > lastSeenNumber.value)
    .toReversed(),
);

/** Crashes and GPU losses with their reasons, and a list of all events. */
export function Incidents(): JSX.Element {
  const [visible, others] = [problems.value.slice(0, MAX_VISIBLE), problems.value.slice(MAX_VISIBLE)];
  const [newest] = problems.value;
  return (
    <section aria-labelledby="incidents-title">
      <h2 id="incidents-title">Crashes and losses</h2>
      <div id="incidents" role="log" aria-labelledby="incidents-title">
        {newest ? (
          <EventList events={visible} />
        ) : (
          <p class="calm">✓ Nothing has crashed, and no GPU was lost.</p>
        )}
        {others.length > 0 && (
          <details>
            <summary>{others.length} more</summary>
            <EventList events={others} />
          </details>
        )}
      </div>
      {newest && <Button onClick={() => (lastSeenNumber.value = newest.number)}>Mark as seen</Button>}
      <details id="events">
        <summary>All events of models and batches ({events.value.length})</summary>
        <div class="scrolling" tabIndex={0} role="region" aria-label="All events of models and batches">
          <EventList events={events.value.toReversed()} />
        </div>
      </details>
    </section>
  );
}

function EventList({ events: list }: { readonly events: readonly PastEvent[] }): JSX.Element {
  return (
    <ul class="happened">
      {list.map((event) => (
        <li key={event.number} class={PROBLEM_TYPES.has(event.type) ? "bad" : ""}>
          <time dateTime={event.time}>{formatTime(event.time)}</time>
          <span>
            <strong>{event.model ?? event.batch}</strong> {describeEvent(event)}
          </span>
        </li>
      ))}
    </ul>
  );
}

function describeEvent({ type, reason, message, code, status }: PastEvent): string {
  const why =
    message ??
    status ??
    (type === "model-unloaded" ? (UNLOAD_REASONS[reason ?? ""] ?? reason) : reason) ??
    "";
  const what = type === "model-failed" && code === "engine_crashed" ? "crashed" : EVENT_LABELS[type];
  return why === "" ? what : `${what}: ${why}`;
}
