import "../../tab/older-browsers.ts";
import { signal, useSignal } from "@preact/signals";
import { type ComponentType, type JSX, render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Button } from "../controls.tsx";
import { ChatView } from "../chat/chat-view.tsx";
import { isListOpen, loadChats } from "../chat/chat-state.ts";
import { chosenDaemon, isExported } from "../daemons.ts";
import { prepareMath } from "../markdown/markdown.tsx";
import { runningPulls } from "../models/stored-pulls.ts";
import { isIdle, problem, showProblem, status } from "../page-state.ts";
import { updateAllowed } from "./allowed-servers.ts";
import { ConnectionBanner, startPolling } from "./connection-banner.tsx";
import { installServiceWorker } from "./persist-page.ts";

const daemon = chosenDaemon();

const Models = daemon
  ? lazy(async () => (await import("../models/models-view.tsx")).ModelsView)
  : lazy(async () => (await import("../models/browser-models.tsx")).BrowserModelsView);
const Monitor = lazy(async () => (await import("../monitor/monitor-view.tsx")).MonitorView);

/** The page at /ui/: its header and one of its views. */
function App(): JSX.Element {
  return (
    <>
      <header>
        {view.value === "" && (
          <Button
            id="show-list"
            aria-expanded={isListOpen}
            aria-controls="sidebar"
            onClick={() => (isListOpen.value = !isListOpen.value)}
          >
            ☰<span class="unseen"> Conversations</span>
          </Button>
        )}
        <h1>Daybreak</h1>
        <p id="status" class={isIdle.value ? "idle" : ""} role="status">
          {status}
        </p>
        {!isExported && <DaemonMenu />}
        <nav aria-label="Views">
          {VIEW_LIST.map(([address, label]) => (
            <a
              key={address}
              href={address === "" ? "#" : address}
              aria-current={view.value === address ? "page" : undefined}
            >
              {label}
            </a>
          ))}
          {daemon && <a href="experiments/">Experiments</a>}
          {daemon && <a href={`${daemon.address}/docs`}>API</a>}
        </nav>
      </header>
      <ConnectionBanner />
      <div id="view">
        {view.value === "" && <ChatView />}
        {view.value === "#/models" && <Models />}
        {view.value === "#/monitor" && <Monitor />}
      </div>
      <p id="problem" role="alert">
        {problem}
        {problem.value !== "" && (
          <Button title="Close" onClick={() => (problem.value = "")}>
            ✕
          </Button>
        )}
      </p>
    </>
  );
}

/** Views of the page by URL fragment. */
const VIEWS = [
  ["", "Chat"],
  ["#/models", "Models"],
  ["#/monitor", "Monitor"],
] as const;
type ViewAddress = (typeof VIEWS)[number][0];

/** Views of this page: the monitor needs a daemon. */
const VIEW_LIST = VIEWS.filter(([address]) => daemon !== undefined || address !== "#/monitor");

/** The current view, which follows the URL fragment. */
const view = signal<ViewAddress>(fromAddress());

addEventListener("hashchange", () => (view.value = fromAddress()));

function fromAddress(): ViewAddress {
  const [address] = VIEW_LIST.find(([each]) => each === location.hash) ?? [""];
  return address;
}

const DaemonDialog = lazy(async () => (await import("./daemon-dialog.tsx")).DaemonDialog);

/** Button that names the current daemon and opens the list of daemons. */
function DaemonMenu(): JSX.Element {
  const isOpen = useSignal(false);
  return (
    <>
      <Button id="daemons" aria-haspopup="dialog" onClick={() => (isOpen.value = true)}>
        <span class="unseen">Daemon: </span>
        {chosenDaemon()?.name ?? "This browser only"} <span aria-hidden="true">▾</span>
      </Button>
      {isOpen.value && <DaemonDialog onClose={() => (isOpen.value = false)} />}
    </>
  );
}

/** Returns a component that loads its script when it is first rendered. */
function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined;
  return function Lazy(props: Props): JSX.Element {
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

/** Delay of preloading, so that it does not compete with the first rendering. */
const IDLE_MS = 1000;

const root = document.getElementById("app");
if (!root) throw new Error('the page has no element with the ID "app"');
if (!updateAllowed()) {
  render(<App />, root);
  startPolling();
  // Downloads that ran in this tab continue in all views.
  if (runningPulls().length > 0) void import("../models/pulls.ts");
  await Promise.all([loadChats(), installServiceWorker()]);
  setTimeout(prepareMath, IDLE_MS);
}
