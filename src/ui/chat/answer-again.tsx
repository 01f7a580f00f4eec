import type { JSX } from "preact";
import { answer, type Source } from "./answering.ts";
import { answering, current, running } from "./chat-state.ts";
import type { ChatMessage } from "./conversation.ts";

/** Asks once more for an answer: as it was asked, in the daemon, in this tab, or of another model. */
export function AnswerAgain({ message }: { readonly message: ChatMessage }): JSX.Element {
  const isRunning = running.value !== undefined;
  const again = (source: Source): void => {
    const asked = current.value.messages.find(({ id }) => id === message.parent);
    if (asked) void answer(asked, source);
  };
  return (
    <>
      <button class="again" type="button" disabled={isRunning} onClick={() => again({})}>
        Answer again
      </button>
      <select
        class="again-with"
        aria-label="Answer again with"
        disabled={isRunning}
        value=""
        onChange={({ currentTarget }) => {
          const [place, model] = currentTarget.value.split("/", 2);
          currentTarget.value = "";
          if (model !== undefined) again({ model: decodeURIComponent(model), inTab: place === "tab" });
        }}
      >
        <option value="">Again with …</option>
        <Places place="daemon" label="The daemon" />
        {isSecureContext && <Places place="tab" label="This tab" />}
      </select>
    </>
  );
}

function Places({ place, label }: { readonly place: string; readonly label: string }): JSX.Element {
  return (
    <optgroup label={label}>
      {answering.value.map(({ alias }) => (
        <option key={alias} value={`${place}/${encodeURIComponent(alias)}`}>
          {alias}
        </option>
      ))}
    </optgroup>
  );
}
