import type { JSX } from "preact";
import { models } from "../page-state.ts";

/** What the daemon is doing. */
export function MonitorRoom(): JSX.Element {
  const loaded = models.value.filter(({ state }) => state === "loaded");
  return (
    <main id="monitor">
      <h2>Monitor</h2>
      <p>{loaded.length} models are loaded.</p>
    </main>
  );
}
