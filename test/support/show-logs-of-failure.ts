import { afterEach } from "vitest";
import { runningDaemons } from "./start-daemon.ts";

/** The last of what a daemon has written, enough for the request that failed. */
const SHOWN_CHARACTERS = 4000;

afterEach(({ task }) => {
  if (task.result?.state !== "fail") return;
  for (const daemon of runningDaemons) {
    console.error(
      `${task.name}: the daemon at ${daemon.url} wrote\n${daemon.logs().slice(-SHOWN_CHARACTERS)}`,
    );
  }
});
