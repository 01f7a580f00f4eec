import type { JSX } from "preact";
import { ChatRoom } from "../chat/chat-room.tsx";
import { isListOpen } from "../chat/chat-state.ts";
import { problem, status } from "../page-state.ts";
import { later } from "./later.tsx";
import { room, ROOM_LIST } from "./rooms.ts";

const ModelsRoom = later(async () => (await import("../models/models-room.tsx")).ModelsRoom);
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
        <p id="status" role="status">
          {status}
        </p>
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
          <a href="experiments/">Experiments</a>
          <a href="/docs">API</a>
        </nav>
      </header>
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
