import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { refresh } from "../page-state.ts";
import { Button, LinkedText } from "../controls.tsx";
import { chatWith } from "./model-card.tsx";
import { cancelPull, forgetPull, type Pull, pausePull, pulls, startPull } from "./pulls.ts";
import { formatBytes, formatDuration } from "../../json/quantities.ts";

/** Poll interval for downloads that this tab has not started. */
const POLL_INTERVAL_MS = 1000;

/** List of running, paused and finished downloads. */
export function PullList(): JSX.Element | null {
  const hasOtherPulls = pulls.value.some(({ state }) => state === "elsewhere");
  useEffect(() => {
    if (!hasOtherPulls) return undefined;
    const timer = setInterval(() => void refresh(), POLL_INTERVAL_MS);
    return () => clearInterval(timer);
  }, [hasOtherPulls]);
  if (pulls.value.length === 0) return null;
  return (
    <section aria-labelledby="downloads-title">
      <h2 id="downloads-title">Downloads</h2>
      <ul id="downloads" class="cards">
        {pulls.value.map((pull) => (
          <PullCard key={pull.name} pull={pull} />
        ))}
      </ul>
    </section>
  );
}

function PullCard({ pull }: { readonly pull: Pull }): JSX.Element {
  const { name, state, downloaded, total, problem, model } = pull;
  const isEmpty = state === "failed" && downloaded === 0;
  return (
    <li class="card" data-pull={name} data-state={state}>
      <h3>{name}</h3>
      {state !== "done" && (state !== "failed" || total > 0) && (
        <>
          <progress
            aria-label={`Download of ${name}`}
            max={total || 1}
            value={total === 0 && state === "running" ? undefined : downloaded}
          />
          <p class="facts">{describeProgress(pull)}</p>
        </>
      )}
      {state === "done" && <p>It is on disk, as {model}.</p>}
      {problem !== undefined && (
        <p class="wrong" role="alert">
          <LinkedText text={problem} />
        </p>
      )}
      <p class="buttons">
        {state === "running" && <Button onClick={() => pausePull(name)}>Pause</Button>}
        {(state === "paused" || state === "failed") && (
          <Button class="main" onClick={() => void startPull(name)}>
            {state === "failed" ? "Try again" : "Resume"}
          </Button>
        )}
        {state === "done" && model !== undefined && (
          <Button class="main" onClick={() => chatWith(model)}>
            Chat
          </Button>
        )}
        {state === "done" && <Button onClick={() => forgetPull(name)}>Close</Button>}
        {(state === "running" || state === "paused" || state === "failed") && (
          <Button
            class="danger"
            title={isEmpty ? undefined : "Stops the download and deletes what has arrived"}
            onClick={() => void cancelPull(name)}
          >
            {isEmpty ? "Close" : "Cancel"}
          </Button>
        )}
      </p>
    </li>
  );
}

/** State of a download, next to the button that started it. */
export function PullStatus({ name }: { readonly name: string }): JSX.Element | null {
  const pull = pulls.value.find((each) => each.name === name);
  if (!pull || pull.state === "done") return null;
  return (
    <p class={pull.problem === undefined ? "facts" : "wrong"} role="status">
      {pull.problem === undefined ? describeProgress(pull) : <LinkedText text={pull.problem} />}
    </p>
  );
}

/** Scrolls to the list of downloads. */
export function goToDownloads(): void {
  document.getElementById("downloads-title")?.scrollIntoView();
}

/** Returns text such as "1.2 GB of 4.7 GB · 25 % · 12 MB/s · 5 min left". */
function describeProgress({ state, downloaded, total, speed, note }: Pull): string {
  const parts = [
    total > 0 && `${formatBytes(downloaded)} of ${formatBytes(total)}`,
    total === 0 && state === "running" && "Asking the hub …",
    total > 0 && `${Math.floor((downloaded / total) * 100)} %`,
    state === "paused" && (total > 0 ? "paused; what has arrived is kept" : "paused before it began"),
    state === "failed" && "stopped; what has arrived is kept",
    state === "elsewhere" && "begun by another tab or program",
  ];
  if (state === "running" && note === undefined && speed !== undefined && speed > 0)
    parts.push(`${formatBytes(speed)}/s`, `${formatDuration((1000 * (total - downloaded)) / speed)} left`);
  if (note !== undefined) parts.push(note);
  return parts.filter((part) => part !== false).join(" · ");
}
