import { signal as value, useSignal } from "@preact/signals";
import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ChatRoom } from "../chat/chat-view.tsx";
import { isListOpen } from "../chat/chat-state.ts";
import { chosenDaemon } from "../daemons.ts";
import { isExported } from "../page-kind.ts";
import { isIdle, problem, showProblem, status } from "../page-state.ts";
import { ConnectionBanner } from "./connection-banner.tsx";

const daemon = chosenDaemon();

const ModelsRoom = daemon
  ? later(async () => (await import("../models/models-view.tsx")).ModelsRoom)
  : later(async () => (await import("../models/browser-models.tsx")).BrowserModelsRoom);
const MonitorRoom = later(async () => (await import("../monitor/monitor-view.tsx")).MonitorRoom);

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

/** The rooms of the page by their address behind the "#". */
const ROOMS = { "": "Chat", "#/models": "Models", "#/monitor": "Monitor" } as const;
type RoomAddress = keyof typeof ROOMS;

/** What they show is of a daemon alone. */
const NEED_DAEMON: ReadonlySet<string> = new Set(["#/monitor"]);

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of a constant
const ROOM_LIST = (Object.entries(ROOMS) as [RoomAddress, string][]).filter(
  ([address]) => chosenDaemon() !== undefined || !NEED_DAEMON.has(address),
);

/** Where the page is; a link to the address of a room goes there. */
const room = value<RoomAddress>(fromAddress());

addEventListener("hashchange", () => (room.value = fromAddress()));

function fromAddress(): RoomAddress {
  const [address] = ROOM_LIST.find(([each]) => each === location.hash) ?? [""];
  return address;
}

const DaemonDialog = later(async () => (await import("./daemon-dialog.tsx")).DaemonDialog);

/** The button that says which daemon the page uses, and opens the list of them. */
function DaemonMenu(): JSX.Element {
  const isOpen = useSignal(false);
  return (
    <>
      <button id="daemons" type="button" aria-haspopup="dialog" onClick={() => (isOpen.value = true)}>
        <span class="unseen">Daemon: </span>
        {chosenDaemon()?.name ?? "This browser only"} <span aria-hidden="true">▾</span>
      </button>
      {isOpen.value && <DaemonDialog onClose={() => (isOpen.value = false)} />}
    </>
  );
}

/** Shows a part of the page whose script is loaded when it is first shown. */
function later<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined;
  return function Later(props: Props): JSX.Element {
    const [Part, setPart] = useState(() => loaded);
    useEffect(() => {
      if (loaded) return;
      const show = async (): Promise<void> => {
        loaded = await load();
        setPart(() => loaded);
      };
      show().catch(showProblem);
    }, []);
    return Part ? <Part {...props} /> : <p class="hint">Loading …</p>;
  };
}
