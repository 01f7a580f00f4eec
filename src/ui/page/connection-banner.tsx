import { effect, signal } from "@preact/signals";
import type { JSX } from "preact";
import { Button } from "../controls.tsx";
import { allowKeyRequest } from "../key-dialog.ts";
import { chosenDaemon } from "../daemons.ts";
import { connection, models, refresh, showProblem } from "../page-state.ts";
import { refreshStored } from "../stored-models.ts";
import { threadNote } from "./persist-page.ts";

/** Time for which the page reports that the daemon is back. */
const RECOVERY_NOTE_MS = 6000;

const TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

/** True for some seconds after an unreachable daemon has answered again. */
const isBack = signal(false);

/** True until the daemon is ready again, also while it is starting. */
let wasUnreachable = false;
effect(() => {
  const { state } = connection.value;
  if (state === "unreachable") {
    wasUnreachable = true;
    isBack.value = false;
  } else if (state === "connected" && wasUnreachable) {
    wasUnreachable = false;
    isBack.value = true;
    setTimeout(() => (isBack.value = false), RECOVERY_NOTE_MS);
  }
});

/** Reports the state of the daemon, unless it is simply connected. */
export function ConnectionBanner(): JSX.Element {
  return (
    <div id="connection" role="status">
      <Message />
    </div>
  );
}

function Message(): JSX.Element | null {
  const now = connection.value;
  switch (now.state) {
    case "unreachable":
      return (
        <p class="warning">
          <span>
            {now.why ?? `${daemonName()} cannot be reached.`} Unreachable since {TIME.format(now.since)}; this
            page tries again by itself.
            {models.value.some(({ in_browser: isStored }) => isStored) &&
              " Models that this browser has answer meanwhile."}
          </span>
          <Button id="retry" onClick={retryNow}>
            Try now
          </Button>
        </p>
      );
    case "locked":
      return (
        <p class="warning">
          <span>The daemon answers only with an API key.</span>
          <Button id="give-key" onClick={giveKey}>
            Enter the key
          </Button>
        </p>
      );
    case "starting":
      return <p>The daemon is starting: it answers as soon as its models are loaded.</p>;
    case "draining":
      return <p>The daemon is ending: it finishes what it has begun, and takes nothing new.</p>;
    case "none":
      return threadNote.value === "" ? null : <p>{threadNote}</p>;
    default:
      return isBack.value ? <p class="good">The daemon is back.</p> : null;
  }
}

function daemonName(): string {
  const { address, name } = chosenDaemon() ?? { address: "", name: "" };
  const { host } = new URL(address);
  return name === host ? `The daemon at ${host}` : `${name} (${host})`;
}

function giveKey(): void {
  const daemon = chosenDaemon();
  if (daemon) allowKeyRequest(daemon.address);
  retryNow();
}

/** Poll interval while the daemon is connected. */
const POLL_INTERVAL_MS = 5000;
/** Poll intervals while the daemon is unreachable: short at first, since most daemons are only restarting. */
const MIN_RETRY_MS = 1000;
const MAX_RETRY_MS = 30_000;

let timer: ReturnType<typeof setTimeout> | undefined;
let retryMs = MIN_RETRY_MS;
let isPolling = false;
let isPollQueued = false;

/** Polls the daemon, and immediately when the network is back or the page becomes visible. */
export function startPolling(): void {
  addEventListener("online", retryNow);
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") retryNow();
  });
  void poll();
}

/** Polls immediately, and resets the retry interval. */
function retryNow(): void {
  retryMs = MIN_RETRY_MS;
  void poll();
}

async function poll(): Promise<void> {
  if (isPolling) {
    // The running poll may have started before the change that caused this call.
    isPollQueued = true;
    return;
  }
  isPolling = true;
  clearTimeout(timer);
  do {
    isPollQueued = false;
    await Promise.all([refresh(), refreshStored()]).catch(showProblem);
  } while (isPollQueued);
  isPolling = false;
  const { state } = connection.value;
  if (state === "none") return;
  timer = setTimeout(() => void poll(), state === "unreachable" ? retryMs : POLL_INTERVAL_MS);
  retryMs = state === "unreachable" ? Math.min(retryMs * 2, MAX_RETRY_MS) : MIN_RETRY_MS;
}
