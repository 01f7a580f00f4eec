import { effect, signal as value } from "@preact/signals";
import type { JSX } from "preact";
import { askKeyAgain } from "../key-dialog.ts";
import { chosenDaemon } from "../daemons.ts";
import { connection, models, refresh, showProblem } from "../page-state.ts";
import { refreshStored } from "../stored-models.ts";
import { threadNote } from "./persist-page.ts";

/** How long the page says that the daemon is back. */
const BACK_MS = 6000;

const TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

/** The daemon was away, and is not any longer. */
const isBack = value(false);

/** Until it answers again, a daemon that starts included. */
let wasAway = false;
effect(() => {
  const { state } = connection.value;
  if (state === "away") {
    wasAway = true;
    isBack.value = false;
  } else if (state === "connected" && wasAway) {
    wasAway = false;
    isBack.value = true;
    setTimeout(() => (isBack.value = false), BACK_MS);
  }
});

/** Says how the daemon is when it does not simply answer. */
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
    case "away":
      return (
        <p class="warning">
          <span>
            {now.why ?? `${nameOfDaemon()} cannot be reached.`} Away since {TIME.format(now.since)}; this page
            tries again by itself.
            {models.value.some(({ in_browser: isHere }) => isHere) &&
              " Models that this browser has answer meanwhile."}
          </span>
          <button type="button" id="retry" onClick={retryNow}>
            Try now
          </button>
        </p>
      );
    case "locked":
      return (
        <p class="warning">
          <span>The daemon answers only with an API key.</span>
          <button type="button" id="give-key" onClick={giveKey}>
            Enter the key
          </button>
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

function nameOfDaemon(): string {
  const { address, name } = chosenDaemon() ?? { address: "", name: "" };
  const { host } = new URL(address);
  return name === host ? `The daemon at ${host}` : `${name} (${host})`;
}

function giveKey(): void {
  const daemon = chosenDaemon();
  if (daemon) askKeyAgain(daemon.address);
  retryNow();
}

/** How often the page asks what the daemon has. */
const REFRESH_MS = 5000;
/** Between tries while the daemon is away: short at first, since most daemons are only started again. */
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;

let timer: ReturnType<typeof setTimeout> | undefined;
let pause = FIRST_PAUSE_MS;
let isAsking = false;
let isWanted = false;

/** Asks the daemon again and again, and at once when there is a reason to think that it may answer. */
export function keepConnected(): void {
  addEventListener("online", retryNow);
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") retryNow();
  });
  void ask();
}

/** Tries at once, and often again at first. */
function retryNow(): void {
  pause = FIRST_PAUSE_MS;
  void ask();
}

async function ask(): Promise<void> {
  if (isAsking) {
    // What is under way may have begun before the reason to ask.
    isWanted = true;
    return;
  }
  isAsking = true;
  clearTimeout(timer);
  do {
    isWanted = false;
    await Promise.all([refresh(), refreshStored()]).catch(showProblem);
  } while (isWanted);
  isAsking = false;
  const { state } = connection.value;
  if (state === "none") return;
  timer = setTimeout(() => void ask(), state === "away" ? pause : REFRESH_MS);
  pause = state === "away" ? Math.min(pause * 2, LONGEST_PAUSE_MS) : FIRST_PAUSE_MS;
}
