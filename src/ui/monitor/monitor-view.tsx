import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { Charts } from "./charts.tsx";
import { Engines, FleetView, Machine } from "./machine.tsx";
import { Incidents, LogsView } from "./logs-view.tsx";
import { isLive, trouble, watch } from "./monitor-state.ts";
import { RequestsTable } from "./requests-table.tsx";

/** What the daemon is doing, and what has happened to it. */
export function MonitorRoom(): JSX.Element {
  useEffect(watch, []);
  return (
    <main id="monitor">
      <p id="watching" role="status">
        {trouble.value !== ""
          ? trouble
          : isLive.value
            ? "● Live: updated every 2 seconds, events as they happen. Charts begin when this room is opened."
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
