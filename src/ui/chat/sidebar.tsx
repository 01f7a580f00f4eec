import type { JSX } from "preact";
import {
  conversations,
  current,
  saveAndShow,
  listedConversations,
  openConversation,
  removeConversation,
  search,
  startConversation,
} from "./chat-state.ts";
import { showProblem } from "../page-state.ts";
import { type Conversation, parseConversations, printConversations } from "./conversation.ts";
import { saveAs } from "../browser-actions.ts";

interface SidebarProps {
  readonly isOpen: boolean;
  readonly onChoose: () => void;
}

/** Searchable list of the conversations in this browser. */
export function Sidebar({ isOpen, onChoose }: SidebarProps): JSX.Element {
  return (
    <aside id="sidebar" class={isOpen ? "open" : ""} aria-label="Conversations">
      <button
        id="new"
        type="button"
        onClick={() => {
          startConversation();
          onChoose();
        }}
      >
        New conversation
      </button>
      <input
        id="search"
        type="search"
        placeholder="Search"
        aria-label="Search conversations"
        value={search}
        onInput={({ currentTarget }) => (search.value = currentTarget.value)}
      />
      {listedConversations.value.length === 0 && search.value !== "" && <p class="hint">Nothing found.</p>}
      <ul id="conversations">
        {listedConversations.value.map((each) => (
          <ConversationEntry key={each.id} conversation={each} onChoose={onChoose} />
        ))}
      </ul>
      <p class="buttons">
        <button
          id="export"
          type="button"
          disabled={conversations.value.length === 0}
          onClick={() => saveAs("daybreak-conversations.json", printConversations(conversations.value))}
        >
          Export
        </button>
        <label class="file">
          Import
          <input
            id="import"
            type="file"
            accept=".json,application/json"
            onChange={({ currentTarget }) => void importFrom(currentTarget)}
          />
        </label>
      </p>
    </aside>
  );
}

async function importFrom(input: HTMLInputElement): Promise<void> {
  const [file] = input.files ?? [];
  input.value = "";
  if (!file) return;
  try {
    for (const each of parseConversations(await file.text())) saveAndShow(each);
  } catch (error) {
    showProblem(error);
  }
}

function ConversationEntry({
  conversation,
  onChoose,
}: {
  readonly conversation: Conversation;
  readonly onChoose: () => void;
}): JSX.Element {
  const { title, isPinned, id } = conversation;
  const name = title === "" ? "Untitled" : title;
  const rename = (): void => {
    const entered = prompt("Name of the conversation", title)?.trim();
    if (entered) saveAndShow({ ...conversation, title: entered });
  };
  return (
    <li class={id === current.value.id ? "chosen" : ""}>
      <button
        class="open"
        type="button"
        onClick={() => {
          openConversation(conversation);
          onChoose();
        }}
      >
        {name}
      </button>
      <button
        type="button"
        aria-pressed={isPinned}
        title={isPinned ? "Unpin" : "Pin"}
        onClick={() => saveAndShow({ ...conversation, isPinned: !isPinned })}
      >
        {isPinned ? "★" : "☆"}
      </button>
      <button type="button" title="Rename" onClick={rename}>
        ✎
      </button>
      <button
        type="button"
        class="delete"
        title="Delete"
        onClick={() => {
          if (confirm(`Delete "${name}"?`)) removeConversation(conversation);
        }}
      >
        ✕
      </button>
    </li>
  );
}
