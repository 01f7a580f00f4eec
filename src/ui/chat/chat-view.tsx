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

/** Distance from the end, in pixels, within which the view follows a growing answer. */
const NEAR_END_PIXELS = 200;

/** The list of conversations on the left, the current one on the right. */
export function ChatView(): JSX.Element {
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
  const messages = branch(current.value);
  const end = useRef<HTMLDivElement>(null);
  const length = messages.at(-1)?.content.length;
  useEffect(() => end.current?.scrollIntoView({ block: "end" }), [messages.length, current.value.id]);
  useEffect(() => {
    const area = end.current?.closest("#scrolled");
    // A user who has scrolled up to read stays there.
    if (area && area.scrollHeight - area.scrollTop - area.clientHeight < NEAR_END_PIXELS)
      area.scrollTop = area.scrollHeight;
  }, [length]);
  return (
    <div id="messages" aria-live="polite">
      {messages.length === 0 && <p class="hint">Ask something. Conversations stay in this browser.</p>}
      {messages
        .filter(({ role }) => role !== "tool")
        .map((message) => (
          <MessageView key={message.id} message={message} />
        ))}
      <div ref={end} />
    </div>
  );
}
