import { connection, refresh, showProblem } from "../page-state.ts";
import { refreshStored } from "../stored-models.ts";

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
export function retryNow(): void {
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
