import { ServiceError } from "../../errors/service-error.ts";
import { HubNetworkFailure } from "../../models/hub/remote/hub-error.ts";
import { closeBody, HubFetch } from "../../models/hub/remote/hub-fetch.ts";
import { formatDuration } from "../../json/quantities.ts";
import { type Check, type Finding, note, ok, problem } from "./run-checks.ts";

const [NAME, TOKEN, CLOCK] = ["Hub", "Hub token", "Clock"];

/** Deadline of the request. */
const DEADLINE_MS = 5000;

/** Clock skew that certificates and signed URLs tolerate. */
const LARGEST_DIFFERENCE_MS = 5 * 60_000;

interface HubCheckOptions {
  readonly hubUrl: string;
  readonly token: string | undefined;
  readonly fetch: typeof fetch;
  /** Unix milliseconds. */
  readonly now?: () => number;
}

/** Checks whether the hub answers and accepts the token, and whether the clocks agree. */
export function hubCheck(options: HubCheckOptions): Check {
  return {
    name: NAME,
    deadlineMs: DEADLINE_MS + 1000,
    run: async (signal) => await look(options, AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)])),
  };
}

async function look(options: HubCheckOptions, signal: AbortSignal): Promise<readonly Finding[]> {
  const { hubUrl, token, fetch, now = Date.now } = options;
  const base = hubUrl.replace(/\/+$/, "");
  const hub = new HubFetch({ hubUrl, token, fetch });
  const path = token === undefined ? "/api/models?limit=1" : "/api/whoami-v2";
  const startedAt = now();
  try {
    const { response } = await hub.request(base + path, { signal });
    const answeredAt = (startedAt + now()) / 2;
    await closeBody(response);
    const { status, headers } = response;
    return [
      status >= 500
        ? note(NAME, `${base} answers with status ${status}`, "Try again later.")
        : ok(NAME, `${base} answers`),
      ...(token === undefined ? [] : [tokenFinding(status, base)]),
      ...clockFindings(headers, answeredAt),
    ];
  } catch (error) {
    return [failureFinding(error, base)];
  }
}

function tokenFinding(status: number, base: string): Finding {
  if (status >= 200 && status < 300) return ok(TOKEN, "accepted");
  if (status === 401 || status === 403) {
    return problem(
      TOKEN,
      `${base} does not accept it (status ${status})`,
      `Make a new one at ${base}/settings/tokens and set HUB_TOKEN to it, or unset HUB_TOKEN: only gated models need one.`,
    );
  }
  return note(TOKEN, `${base} does not say whether the token is valid (status ${status})`);
}

function clockFindings(headers: Headers, now: number): readonly Finding[] {
  const date = Date.parse(headers.get("date") ?? "");
  if (Number.isNaN(date)) return [];
  // A cached response is as old as its age header says.
  const hubTime = date + Number(headers.get("age") ?? 0) * 1000;
  const difference = now - hubTime;
  if (Math.abs(difference) <= LARGEST_DIFFERENCE_MS) return [ok(CLOCK, "agrees with the hub's")];
  const how = `${formatDuration(Math.abs(difference))} ${difference > 0 ? "ahead of" : "behind"}`;
  return [
    note(
      CLOCK,
      `${how} the hub's; certificates and signed URLs may be rejected`,
      "Set the clock, preferably from the network (Linux: timedatectl set-ntp true).",
    ),
  ];
}

function failureFinding(error: unknown, base: string): Finding {
  if (error instanceof ServiceError)
    return problem(TOKEN, error.message, "Set HUB_TOKEN again, without spaces or line ends.");
  const isTimeout = error instanceof Error && (error.name === "TimeoutError" || error.name === "AbortError");
  const reason = isTimeout
    ? `no answer in ${DEADLINE_MS / 1000} s`
    : error instanceof Error
      ? error.message
      : String(error);
  if (error instanceof HubNetworkFailure && error.isFinal) {
    return problem(
      NAME,
      `${base} cannot be used: ${reason}`,
      "Until then nothing can be downloaded; models on disk work.",
    );
  }
  return note(
    NAME,
    `${base} cannot be reached (${reason})`,
    "Models on disk work without it. To download, check the network connection, and set HTTPS_PROXY if a proxy is needed.",
  );
}
