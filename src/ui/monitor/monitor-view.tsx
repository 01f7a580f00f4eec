import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { Charts } from "./charts.tsx";
import { Engines, FleetView, Machine } from "./machine.tsx";
import { Incidents, LogsView } from "./logs-view.tsx";
import { isLive, connectionProblem, watchDaemon } from "./monitor-state.ts";
import { RequestsTable } from "./requests-table.tsx";

/** Monitor of the daemon: incidents, load, machine, requests and log. */
export function MonitorView(): JSX.Element {
  useEffect(watchDaemon, []);
  return (
    <main id="monitor">
      <p id="watching" role="status">
        {connectionProblem.value !== ""
          ? connectionProblem
          : isLive.value
            ? "● Live: updated every 2 seconds, events as they happen. Charts begin when this view is opened."
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
