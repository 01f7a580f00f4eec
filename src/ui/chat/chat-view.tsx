import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { bound, Button, FileButton } from "../controls.tsx";
import { saveAs } from "../browser.ts";
import { showProblem } from "../page-state.ts";
import { ToolsForm } from "../tools/tools-form.tsx";
import {
  conversations,
  current,
  isListOpen,
  listedConversations,
  openConversation,
  removeConversation,
  saveAndShow,
  search,
  startConversation,
} from "./chat-state.ts";
import { Composer } from "./composer.tsx";
import { branch, type Conversation, parseExport, toExport } from "./conversation.ts";
import { MessageView } from "./message-view.tsx";
import { onShortcut, ShortcutList, visiblePanel } from "./shortcuts.tsx";
import { SettingsForm } from "./settings-form.tsx";

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
      <Sidebar />
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

/** Searchable list of the conversations in this browser. */
function Sidebar(): JSX.Element {
  return (
    <aside id="sidebar" class={isListOpen.value ? "open" : ""} aria-label="Conversations">
      <Button
        id="new"
        onClick={() => {
          startConversation();
          isListOpen.value = false;
        }}
      >
        New conversation
      </Button>
      <input
        id="search"
        type="search"
        placeholder="Search"
        aria-label="Search conversations"
        {...bound(search)}
      />
      {listedConversations.value.length === 0 && search.value !== "" && <p class="hint">Nothing found.</p>}
      <ul id="conversations">
        {listedConversations.value.map((each) => (
          <ConversationEntry key={each.id} conversation={each} />
        ))}
      </ul>
      <p class="buttons">
        <Button
          id="export"
          disabled={conversations.value.length === 0}
          onClick={() => saveAs("daybreak-conversations.json", toExport(conversations.value))}
        >
          Export
        </Button>
        <FileButton id="import" accept=".json,application/json" onFiles={importFrom}>
          Import
        </FileButton>
      </p>
    </aside>
  );
}

async function importFrom([file]: readonly File[]): Promise<void> {
  if (!file) return;
  try {
    for (const each of parseExport(await file.text())) saveAndShow(each);
  } catch (error) {
    showProblem(error);
  }
}

function ConversationEntry({ conversation }: { readonly conversation: Conversation }): JSX.Element {
  const { title, isPinned, id } = conversation;
  const name = title === "" ? "Untitled" : title;
  const rename = (): void => {
    const entered = prompt("Name of the conversation", title)?.trim();
    if (entered) saveAndShow({ ...conversation, title: entered });
  };
  return (
    <li class={id === current.value.id ? "chosen" : ""}>
      <Button
        class="open"
        onClick={() => {
          openConversation(conversation);
          isListOpen.value = false;
        }}
      >
        {name}
      </Button>
      <Button
        aria-pressed={isPinned}
        title={isPinned ? "Unpin" : "Pin"}
        onClick={() => saveAndShow({ ...conversation, isPinned: !isPinned })}
      >
        {isPinned ? "★" : "☆"}
      </Button>
      <Button title="Rename" onClick={rename}>
        ✎
      </Button>
      <Button
        class="delete"
        title="Delete"
        onClick={() => {
          if (confirm(`Delete "${name}"?`)) removeConversation(conversation);
        }}
      >
        ✕
      </Button>
    </li>
  );
}
