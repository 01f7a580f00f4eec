import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { ToolsForm } from "../tools/tools-form.tsx";
import { current, isListOpen } from "./chat-state.ts";
import { Composer } from "./composer.tsx";
import { branch } from "./conversation.ts";
import { MessageView } from "./message-view.tsx";
import { onShortcut, ShortcutList, visiblePanel } from "./shortcuts.tsx";
import { SettingsForm } from "./settings-form.tsx";
import { Sidebar } from "./sidebar.tsx";

/** Pixels. */
const NEAR_END = 200;

/** Conversations on the left, one of them on the right. */
export function ChatRoom(): JSX.Element {
  useEffect(() => {
    addEventListener("keydown", onShortcut);
    return () => removeEventListener("keydown", onShortcut);
  }, []);
  return (
    <div id="columns">
      <Sidebar isOpen={isListOpen.value} onChoose={() => (isListOpen.value = false)} />
      <main>
        <div id="scrolled" tabIndex={0} role="region" aria-label="Conversation">
          {visiblePanel.value === "settings" && <SettingsForm />}
          {visiblePanel.value === "tools" && <ToolsForm />}
          {visiblePanel.value === "shortcuts" && <ShortcutList />}
          <Messages />
        </div>
        <Composer />
      </main>
    </div>
  );
}

function Messages(): JSX.Element {
  const shown = branch(current.value);
  const end = useRef<HTMLDivElement>(null);
  const length = shown.at(-1)?.content.length;
  useEffect(() => end.current?.scrollIntoView({ block: "end" }), [shown.length, current.value.id]);
  useEffect(() => {
    const area = end.current?.closest("#scrolled");
    // Whoever reads further up is left there.
    if (area && area.scrollHeight - area.scrollTop - area.clientHeight < NEAR_END)
      area.scrollTop = area.scrollHeight;
  }, [length]);
  return (
    <div id="messages" aria-live="polite">
      {shown.length === 0 && <p class="hint">Ask something. Conversations stay in this browser.</p>}
      {shown
        .filter(({ role }) => role !== "tool")
        .map((message) => (
          <MessageView key={message.id} message={message} />
        ))}
      <div ref={end} />
    </div>
  );
}
