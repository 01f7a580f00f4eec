import type { JSX } from "preact";
import { ChatRoom } from "../chat/chat-room.tsx";
import { isListOpen } from "../chat/chat-state.ts";
import { chosenDaemon } from "../daemons.ts";
import { isExported } from "../page-kind.ts";
import { isIdle, problem, status } from "../page-state.ts";
import { ConnectionBanner } from "./connection-banner.tsx";
import { DaemonMenu } from "./daemon-menu.tsx";
import { later } from "./later.tsx";
import { room, ROOM_LIST } from "./rooms.ts";

const daemon = chosenDaemon();

const ModelsRoom = daemon
  ? later(async () => (await import("../models/models-room.tsx")).ModelsRoom)
  : later(async () => (await import("../models/browser-models-room.tsx")).BrowserModelsRoom);
const MonitorRoom = later(async () => (await import("../monitor/monitor-room.tsx")).MonitorRoom);

/** The page behind /ui/: its head, and one of its rooms. */
export function App(): JSX.Element {
  return (
    <>
      <header>
        {room.value === "" && (
          <button
            id="show-list"
            type="button"
            aria-expanded={isListOpen}
            aria-controls="sidebar"
            onClick={() => (isListOpen.value = !isListOpen.value)}
          >
            ☰<span class="unseen"> Conversations</span>
          </button>
        )}
        <h1>Daybreak</h1>
        <p id="status" class={isIdle.value ? "idle" : ""} role="status">
          {status}
        </p>
        {!isExported && <DaemonMenu />}
        <nav aria-label="Rooms">
          {ROOM_LIST.map(([address, label]) => (
            <a
              key={address}
              href={address === "" ? "#" : address}
              aria-current={room.value === address ? "page" : undefined}
            >
              {label}
            </a>
          ))}
          {daemon && <a href="experiments/">Experiments</a>}
          {daemon && <a href={`${daemon.address}/docs`}>API</a>}
        </nav>
      </header>
      <ConnectionBanner />
      <div id="room">
        {room.value === "" && <ChatRoom />}
        {room.value === "#/models" && <ModelsRoom />}
        {room.value === "#/monitor" && <MonitorRoom />}
      </div>
      <p id="problem" role="alert">
        {problem}
        {problem.value !== "" && (
          <button type="button" title="Close" onClick={() => (problem.value = "")}>
            ✕
          </button>
        )}
      </p>
    </>
  );
}
