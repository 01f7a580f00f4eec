import { computed, signal as value } from "@preact/signals";
import type { JSX } from "preact";
import { LOG_LEVELS, type LogLevel } from "../../api/management/activity-schemas.ts";
import { moment } from "./format.ts";
import { events, logs, type PastEvent, type PastLog } from "./monitor-state.ts";

/** More are in the daemon's own log. */
const MAX_ROWS = 200;

const level = value<LogLevel>("info");
const text = value("");
/** What was there when somebody began to read in peace; undefined: new records appear. */
const paused = value<readonly PastLog[] | undefined>(undefined);

const chosen = computed(() => {
  const least = LOG_LEVELS.indexOf(level.value);
  const wanted = text.value.trim().toLowerCase();
  return (paused.value ?? logs.value)
    .filter((each) => LOG_LEVELS.indexOf(each.level) >= least)
    .filter((each) => `${each.message}\n${fieldsOf(each)}`.toLowerCase().includes(wanted))
    .slice(-MAX_ROWS)
    .toReversed();
});

/** The last records of the daemon's log, the newest first. */
export function LogsView(): JSX.Element {
  const missed = paused.value ? logs.value.length - paused.value.length : 0;
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
          With the words{" "}
          <input
            id="log-filter"
            type="search"
            value={text}
            onInput={({ currentTarget }) => (text.value = currentTarget.value)}
          />
        </label>
        <button
          id="log-pause"
          type="button"
          aria-pressed={paused.value !== undefined}
          onClick={() => (paused.value = paused.value ? undefined : logs.value)}
        >
          {paused.value ? `Paused${missed > 0 ? `, ${missed} new` : ""}` : "Pause"}
        </button>
      </p>
      <div class="scrolling" tabIndex={0} role="region" aria-label="Records of the log">
        <ol id="logs">
          {chosen.value.map((each) => (
            <Line key={each.number} log={each} />
          ))}
        </ol>
      </div>
      {chosen.value.length === 0 && <p>The log has no such record.</p>}
    </section>
  );
}

function Line({ log }: { readonly log: PastLog }): JSX.Element {
  const stack = stackOf(log);
  return (
    <li class={log.level}>
      <time dateTime={log.time}>{moment(log.time)}</time> <span class="level">{log.level}</span>{" "}
      <span class="message">{log.message}</span> <span class="log-fields">{fieldsOf(log)}</span>
      {stack !== undefined && (
        <details>
          <summary>Where it happened</summary>
          <pre>{stack}</pre>
        </details>
      )}
    </li>
  );
}

/** The error's message is enough; its stack has a place of its own. */
function fieldsOf({ fields }: PastLog): string {
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
  return (
    typeof field === "object" && field !== null && "message" in field && typeof field.message === "string"
  );
}

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
