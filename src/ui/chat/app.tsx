import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { current, problem, status } from "./chat-state.ts";
import { branch } from "./conversation.ts";
import { Composer } from "./composer.tsx";
import { MessageView } from "./message-view.tsx";
import { ModelList } from "./model-list.tsx";
import { SettingsForm } from "./settings-form.tsx";
import { Sidebar } from "./sidebar.tsx";

/** Pixels. */
const NEAR_END = 200;

const PANELS = [
  ["models", "Models"],
  ["settings", "Settings"],
] as const;

/** The page behind /ui/. */
export function App(): JSX.Element {
  const panel = useSignal<(typeof PANELS)[number][0] | undefined>(undefined);
  const isListOpen = useSignal(false);
  return (
    <>
      <header>
        <button
          id="show-list"
          type="button"
          aria-expanded={isListOpen}
          aria-controls="sidebar"
          onClick={() => (isListOpen.value = !isListOpen.value)}
        >
          ☰<span class="unseen"> Conversations</span>
        </button>
        <h1>Daybreak</h1>
        <p id="status" role="status">
          {status}
        </p>
        <nav>
          {PANELS.map(([name, label]) => (
            <button
              key={name}
              id={`show-${name}`}
              type="button"
              aria-expanded={panel.value === name}
              onClick={() => (panel.value = panel.value === name ? undefined : name)}
            >
              {label}
            </button>
          ))}
          <a href="/ui/experiments/">Experiments</a>
          <a href="/docs">API</a>
        </nav>
      </header>
      <div id="columns">
        <Sidebar isOpen={isListOpen.value} onChoose={() => (isListOpen.value = false)} />
        <main>
          <div id="page">
            {panel.value === "models" && <ModelList />}
            {panel.value === "settings" && <SettingsForm />}
            <Messages />
          </div>
          <p id="problem" role="alert">
            {problem}
          </p>
          <Composer />
        </main>
      </div>
    </>
  );
}

function Messages(): JSX.Element {
  const shown = branch(current.value);
  const end = useRef<HTMLDivElement>(null);
  const length = shown.at(-1)?.content.length;
  useEffect(() => end.current?.scrollIntoView({ block: "end" }), [shown.length, current.value.id]);
  useEffect(() => {
    const area = end.current?.closest("#page");
    // Whoever reads further up is left there.
    if (area && area.scrollHeight - area.scrollTop - area.clientHeight < NEAR_END)
      area.scrollTop = area.scrollHeight;
  }, [length]);
  return (
    <div id="messages" aria-live="polite">
      {shown.length === 0 && <p class="hint">Ask something. Conversations stay in this browser.</p>}
      {shown.map((message) => (
        <MessageView key={message.id} message={message} />
      ))}
      <div ref={end} />
    </div>
  );
}
