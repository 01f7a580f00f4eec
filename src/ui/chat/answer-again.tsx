import type { JSX } from "preact";
import type { ListedModel } from "../daemon-api.ts";
import { IN_BROWSER } from "../stored-models.ts";
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
        <Places place="daemon" label="The daemon" models={answering.value.filter(isOfDaemon)} />
        {isSecureContext && <Places place="tab" label="This tab" models={answering.value} />}
      </select>
    </>
  );
}

function isOfDaemon({ state }: ListedModel): boolean {
  return state !== IN_BROWSER;
}

interface PlacesProps {
  readonly place: string;
  readonly label: string;
  readonly models: readonly ListedModel[];
}

function Places({ place, label, models }: PlacesProps): JSX.Element | null {
  if (models.length === 0) return null;
  return (
    <optgroup label={label}>
      {models.map(({ alias }) => (
        <option key={alias} value={`${place}/${encodeURIComponent(alias)}`}>
          {alias}
        </option>
      ))}
    </optgroup>
  );
}
