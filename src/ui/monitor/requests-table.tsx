import { computed, signal as value } from "@preact/signals";
import type { JSX } from "preact";
import { count, duration, moment, short } from "./format.ts";
import { type PastRequest, requests } from "./monitor-state.ts";

/** Rows at first, and more of them at each press of a button. */
const ROWS = 50;

/** What is shown of the requests. Pages and scrapers read all the time; that is left out unless somebody asks for it. */
const KINDS = {
  work: { label: "Answers and changes", fits: (each: PastRequest) => hasFailed(each) || !isLook(each) },
  models: { label: "Answers of models", fits: (each: PastRequest) => each.model !== undefined },
  failed: { label: "Failed", fits: hasFailed },
  all: { label: "Everything", fits: () => true },
} as const;
type Kind = keyof typeof KINDS;

const COLUMNS = ["Time", "Request", "Status", "Model", "Tokens", "First token", "Tokens/s", "Took"];

const kind = value<Kind>("work");
const text = value("");
const rows = value(ROWS);

const chosen = computed(() => {
  const wanted = text.value.trim().toLowerCase();
  const { fits } = KINDS[kind.value];
  return requests.value
    .filter(
      (each) => fits(each) && `${each.path}\n${each.model ?? ""}\n${each.id}`.toLowerCase().includes(wanted),
    )
    .toReversed();
});

/** The last requests, the newest first. */
export function RequestsTable(): JSX.Element {
  const list = chosen.value;
  return (
    <section aria-labelledby="requests-title">
      <h2 id="requests-title">Requests</h2>
      <p class="fields">
        <label>
          Show{" "}
          <select
            id="request-kind"
            value={kind.value}
            onChange={({ currentTarget: { value: name } }) => (kind.value = isKind(name) ? name : "work")}
          >
            {Object.entries(KINDS).map(([name, { label }]) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <label>
          Path, model or id{" "}
          <input
            id="request-filter"
            type="search"
            value={text}
            onInput={({ currentTarget }) => (text.value = currentTarget.value)}
          />
        </label>
      </p>
      {/* Small screens show rows as cards; without its roles it would then be no table for screen readers. */}
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
        <button type="button" onClick={() => (rows.value += ROWS)}>
          Show more ({count(list.length - rows.value)})
        </button>
      )}
    </section>
  );
}

function Row({ request }: { readonly request: PastRequest }): JSX.Element {
  const {
    time,
    method,
    path,
    status,
    model = "",
    first_token_ms: first,
    tokens_per_second: speed,
    ms,
  } = request;
  const cells = [
    moment(time),
    `${method} ${path}`,
    <Outcome key="outcome" request={request} status={status} />,
    model,
    tokensOf(request),
    first === undefined ? "" : duration(first),
    speed === undefined || speed === 0 ? "" : short(speed),
    duration(ms),
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

function Outcome({
  request,
  status,
}: {
  readonly request: PastRequest;
  readonly status: number;
}): JSX.Element {
  return (
    <>
      {hasFailed(request) && <span class="failed">✕ failed </span>}
      {status}
      {request.failure !== undefined && ` ${request.failure}`}
      {request.aborted && " client left"}
    </>
  );
}

function tokensOf({
  prompt_tokens: prompt,
  cached_tokens: cached = 0,
  completion_tokens: made,
}: PastRequest): string {
  if (prompt === undefined) return "";
  const known = cached > 0 ? ` (${count(cached)} cached)` : "";
  return made === undefined ? `${count(prompt)}${known}` : `${count(prompt)}${known} → ${count(made)}`;
}

function hasFailed({ status, failure }: PastRequest): boolean {
  return status >= 400 || failure !== undefined;
}

/** It read something, and no model had to do with it. */
function isLook({ method, model }: PastRequest): boolean {
  return model === undefined && (method === "GET" || method === "HEAD");
}

function isKind(name: string): name is Kind {
  return name in KINDS;
}
