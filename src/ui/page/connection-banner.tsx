import { effect, signal as value } from "@preact/signals";
import type { JSX } from "preact";
import { askKeyAgain } from "../ask-key.ts";
import { chosenDaemon } from "../daemons.ts";
import { connection, models } from "../page-state.ts";
import { retryNow } from "./keep-connected.ts";
import { threadNote } from "./keep-page.ts";

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
