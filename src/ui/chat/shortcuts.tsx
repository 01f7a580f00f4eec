import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { answer, continueAnswer } from "./answering.ts";
import { current, running, startConversation } from "./chat-state.ts";
import { branch } from "./conversation.ts";

interface Shortcut {
  readonly keys: string;
  readonly meaning: string;
  readonly isPressed: (event: KeyboardEvent) => boolean;
  readonly run: () => void;
}

/** Panels that can be opened above the messages. */
export const PANELS = [
  ["settings", "Settings"],
  ["tools", "Tools"],
  ["shortcuts", "Shortcuts"],
] as const;

export const visiblePanel = signal<Panel | undefined>(undefined);

const SHORTCUTS: readonly Shortcut[] = [
  {
    keys: "Escape",
    meaning: "Stop the answer",
    isPressed: ({ key }) => key === "Escape",
    run: () => running.value?.abort(),
  },
  altShortcut("N", "New conversation", () => {
    startConversation();
    focus("prompt");
  }),
  altShortcut("S", "Search conversations", () => focus("search")),
  altShortcut("M", "Write a message", () => focus("prompt")),
  altShortcut("R", "Answer again", () => {
    const messages = branch(current.value);
    const question = messages.findLast(({ role }) => role !== "assistant");
    if (question && !running.value) void answer(question);
  }),
  altShortcut("C", "Continue the answer", () => {
    const last = branch(current.value).at(-1);
    if (last?.role === "assistant" && !running.value) void continueAnswer(last);
  }),
  altShortcut("E", "Edit the last question", () => {
    const buttons = [...document.querySelectorAll<HTMLButtonElement>("#messages .edit")];
    buttons.at(-1)?.click();
  }),
  altShortcut("K", "Show or hide these shortcuts", () => {
    visiblePanel.value = visiblePanel.value === "shortcuts" ? undefined : "shortcuts";
  }),
];

/** Keys that the message field handles. */
const FIELD_KEYS = [
  ["Enter", "Send"],
  ["Shift+Enter", "Begin a new line"],
] as const;

/** Runs the shortcut of a keyboard event, if there is one. */
export function onShortcut(event: KeyboardEvent): void {
  const found = SHORTCUTS.find(({ isPressed }) => isPressed(event));
  if (!found) return;
  if (event.altKey) event.preventDefault();
  found.run();
}

/** Lists all shortcuts. */
export function ShortcutList(): JSX.Element {
  return (
    <section id="shortcuts" aria-label="Shortcuts">
      <h2>Shortcuts</h2>
      <dl>
        {[...FIELD_KEYS, ...SHORTCUTS.map(({ keys, meaning }) => [keys, meaning] as const)].map(
          ([keys, meaning]) => (
            <div key={keys}>
              <dt>
                <kbd>{keys}</kbd>
              </dt>
              <dd>{meaning}</dd>
            </div>
          ),
        )}
      </dl>
    </section>
  );
}

/**
 * Returns a shortcut for Alt and the key of a letter. Compares the key code, since Alt changes the typed letter on a
 * Mac.
 */
function altShortcut(letter: string, meaning: string, run: () => void): Shortcut {
  const isPressed = ({ altKey, ctrlKey, metaKey, code }: KeyboardEvent): boolean =>
    altKey && !ctrlKey && !metaKey && code === `Key${letter}`;
  return { keys: `Alt+${letter}`, meaning, isPressed, run };
}

function focus(id: string): void {
  document.getElementById(id)?.focus();
}

export type Panel = (typeof PANELS)[number][0];
