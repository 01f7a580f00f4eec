import { computed, signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { Button, bound } from "../controls.tsx";
import { formatDuration, formatInteger, formatNumber, formatTime } from "../../json/quantities.ts";
import { Charts } from "./charts.tsx";
import { Incidents, LogsView } from "./logs-view.tsx";
import { Engines, FleetView, Machine } from "./machine.tsx";
import { connectionProblem, isLive, type PastRequest, requests, watchDaemon } from "./monitor-state.ts";

/** Monitor of the daemon: incidents, load, machine, requests and log. */
export function MonitorView(): JSX.Element {
  useEffect(watchDaemon, []);
  return (
    <main id="monitor">
      <p id="watching" role="status">
        {connectionProblem.value !== ""
          ? connectionProblem
          : isLive.value
            ? "● Live: updated every 2 seconds, events as they happen. Charts begin when this view is opened."
            : "Connecting to the daemon's events …"}
      </p>
      <Incidents />
      <Charts />
      <Engines />
      <Machine />
      <FleetView />
      <RequestsTable />
      <LogsView />
    </main>
  );
}

/** Number of rows that "Show more" adds. */
const ROWS_PER_PAGE = 50;

/** Filters of the table. The default hides successful reads, which pages and scrapers repeat all the time. */
const FILTERS = {
  work: { label: "Answers and changes", fits: (each: PastRequest) => hasFailed(each) || !isRead(each) },
  models: { label: "Answers of models", fits: (each: PastRequest) => each.model !== undefined },
  failed: { label: "Failed", fits: hasFailed },
  all: { label: "Everything", fits: () => true },
} as const;
type FilterName = keyof typeof FILTERS;

const COLUMNS = ["Time", "Request", "Status", "Model", "Tokens", "First token", "Tokens/s", "Took"];

const filterName = signal<FilterName>("work");
const text = signal("");
const rows = signal(ROWS_PER_PAGE);

const filteredRequests = computed(() => {
  const words = text.value.trim().toLowerCase();
  const { fits } = FILTERS[filterName.value];
  return requests.value
    .filter(
      (each) => fits(each) && `${each.path}\n${each.model ?? ""}\n${each.id}`.toLowerCase().includes(words),
    )
    .toReversed();
});

/** The last requests, newest first. */
function RequestsTable(): JSX.Element {
  const list = filteredRequests.value;
  return (
    <section aria-labelledby="requests-title">
      <h2 id="requests-title">Requests</h2>
      <p class="fields">
        <label>
          Show{" "}
          <select
            id="request-kind"
            value={filterName.value}
            onChange={({ currentTarget: { value: name } }) =>
              (filterName.value = isFilterName(name) ? name : "work")
            }
          >
            {Object.entries(FILTERS).map(([name, { label }]) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <label>
          Path, model or id <input id="request-filter" type="search" {...bound(text)} />
        </label>
      </p>
      {/* On small screens, CSS shows rows as cards. The roles keep it a table for screen readers. */}
      <table id="requests" role="table" aria-labelledby="requests-title">
        <thead role="rowgroup">
          <tr role="row">
            {COLUMNS.map((name) => (
              <th key={name} role="columnheader" scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {list.slice(0, rows.value).map((each) => (
            <Row key={each.number} request={each} />
          ))}
        </tbody>
      </table>
      {list.length === 0 && <p>No such request has come yet.</p>}
      {list.length > rows.value && (
        <Button onClick={() => (rows.value += ROWS_PER_PAGE)}>
          Show more ({formatInteger(list.length - rows.value)})
        </Button>
      )}
    </section>
  );
}

function Row({ request }: { readonly request: PastRequest }): JSX.Element {
  const { model = "", first_token_ms: first, tokens_per_second: speed } = request;
  const cells = [
    formatTime(request.time),
    `${request.method} ${request.path}`,
    <Outcome key="outcome" request={request} />,
    model,
    describeTokens(request),
    first === undefined ? "" : formatDuration(first),
    speed === undefined || speed === 0 ? "" : formatNumber(speed),
    formatDuration(request.ms),
  ];
  return (
    <tr role="row" class={hasFailed(request) ? "bad" : ""} title={`Request ${request.id}`}>
      {cells.map((cell, index) => (
        <td key={COLUMNS[index]} role="cell" data-label={COLUMNS[index]} class={cell === "" ? "empty" : ""}>
          {cell}
        </td>
      ))}
    </tr>
  );
}

function Outcome({ request }: { readonly request: PastRequest }): JSX.Element {
  return (
    <>
      {hasFailed(request) && <span class="failed">✕ failed </span>}
      {request.status}
      {request.failure !== undefined && ` ${request.failure}`}
      {request.aborted && " client left"}
    </>
  );
}

function describeTokens({
  prompt_tokens: prompt,
  cached_tokens: cached = 0,
  completion_tokens: completion,
}: PastRequest): string {
  if (prompt === undefined) return "";
  const cachedNote = cached > 0 ? ` (${formatInteger(cached)} cached)` : "";
  return completion === undefined
    ? `${formatInteger(prompt)}${cachedNote}`
    : `${formatInteger(prompt)}${cachedNote} → ${formatInteger(completion)}`;
}

function hasFailed({ status, failure }: PastRequest): boolean {
  return status >= 400 || failure !== undefined;
}

/** True if the request only read state and used no model. */
function isRead({ method, model }: PastRequest): boolean {
  return model === undefined && (method === "GET" || method === "HEAD");
}

function isFilterName(name: string): name is FilterName {
  return name in FILTERS;
}
