import { signal as value } from "@preact/signals";
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

/** What the chat shows above the messages when it is asked for. */
export const PANELS = [
  ["settings", "Settings"],
  ["tools", "Tools"],
  ["shortcuts", "Shortcuts"],
] as const;

export const visiblePanel = value<Panel | undefined>(undefined);

const SHORTCUTS: readonly Shortcut[] = [
  {
    keys: "Escape",
    meaning: "Stop the answer",
    isPressed: ({ key }) => key === "Escape",
    run: () => running.value?.abort(),
  },
  alt("N", "New conversation", () => {
    startConversation();
    focus("prompt");
  }),
  alt("S", "Search conversations", () => focus("search")),
  alt("M", "Write a message", () => focus("prompt")),
  alt("R", "Answer again", () => {
    const shown = branch(current.value);
    const asked = shown.findLast(({ role }) => role !== "assistant");
    if (asked && !running.value) void answer(asked);
  }),
  alt("C", "Continue the answer", () => {
    const last = branch(current.value).at(-1);
    if (last?.role === "assistant" && !running.value) void continueAnswer(last);
  }),
  alt("E", "Edit the last question", () => {
    const buttons = [...document.querySelectorAll<HTMLButtonElement>("#messages .edit")];
    buttons.at(-1)?.click();
  }),
  alt("K", "Show or hide these shortcuts", () => {
    visiblePanel.value = visiblePanel.value === "shortcuts" ? undefined : "shortcuts";
  }),
];

/** Keys that need no shortcut of ours. */
const OTHERS = [
  ["Enter", "Send"],
  ["Shift+Enter", "Begin a new line"],
] as const;

/** Runs the shortcut of an event, if it is one. */
export function onShortcut(event: KeyboardEvent): void {
  const found = SHORTCUTS.find(({ isPressed }) => isPressed(event));
  if (!found) return;
  if (event.altKey) event.preventDefault();
  found.run();
}

/** The keys, for people. */
export function ShortcutList(): JSX.Element {
  return (
    <section id="shortcuts" aria-label="Shortcuts">
      <h2>Shortcuts</h2>
      <dl>
        {[...OTHERS, ...SHORTCUTS.map(({ keys, meaning }) => [keys, meaning] as const)].map(
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

/** Not by the letter that is typed: Alt makes another one of it on a Mac. */
function alt(letter: string, meaning: string, run: () => void): Shortcut {
  const isPressed = ({ altKey, ctrlKey, metaKey, code }: KeyboardEvent): boolean =>
    altKey && !ctrlKey && !metaKey && code === `Key${letter}`;
  return { keys: `Alt+${letter}`, meaning, isPressed, run };
}

function focus(id: string): void {
  document.getElementById(id)?.focus();
}

export type Panel = (typeof PANELS)[number][0];
