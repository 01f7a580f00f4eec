import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import type { ListedModel } from "../daemon-api.ts";
import { models } from "../page-state.ts";
import { IN_BROWSER } from "../stored-models.ts";
import { BrowserModels } from "./browser-models.tsx";
import { GetModel } from "./get-model.tsx";
import { ModelCard } from "./model-card.tsx";
import { OpenDialog } from "./model-dialogs.tsx";
import { PullList } from "./pull-list.tsx";
import { openDialog } from "./models-api.ts";
import { storePicked } from "./store-files.ts";

const PLACES = [
  ["installed-title", "On this machine"],
  ["get-title", "Get a model"],
  ["browser-title", "In this browser"],
] as const;

async function store(files: readonly File[]): Promise<void> {
  if (await storePicked(files)) goTo("browser-title");
}

/** The models of the daemon, of the hub and of the browser. */
export function ModelsRoom(): JSX.Element {
  const isOver = useSignal(false);
  return (
    <main
      id="models"
      class={isOver.value ? "over" : ""}
      onDragOver={(event) => {
        if (!event.dataTransfer?.types.includes("Files")) return;
        event.preventDefault();
        isOver.value = true;
      }}
      onDragLeave={({ relatedTarget, currentTarget }) => {
        if (!(relatedTarget instanceof Node && currentTarget.contains(relatedTarget))) isOver.value = false;
      }}
      onDrop={(event) => {
        event.preventDefault();
        isOver.value = false;
        void store([...(event.dataTransfer?.files ?? [])]);
      }}
    >
      <p class="buttons places">
        {PLACES.map(([id, label]) => (
          <button key={id} type="button" onClick={() => goTo(id)}>
            {label}
          </button>
        ))}
      </p>
      <PullList />
      <Installed />
      <GetModel />
      <BrowserModels onFiles={(files) => void store(files)} />
      <OpenDialog />
    </main>
  );
}

function Installed(): JSX.Element {
  // What is only being downloaded is in the list of downloads.
  const installed = models.value.filter(
    ({ state, parameters = 0 }) => state !== IN_BROWSER && (state !== "downloading" || parameters > 0),
  );
  return (
    <section aria-labelledby="installed-title">
      <h2 id="installed-title" tabIndex={-1}>
        On this machine
      </h2>
      <ul id="installed" class="cards">
        {installed
          .toSorted((one, other) => rankOf(one) - rankOf(other) || one.alias.localeCompare(other.alias))
          .map((model) => (
            <ModelCard key={model.alias} model={model} />
          ))}
      </ul>
      <p class="buttons">
        <button type="button" onClick={() => (openDialog.value = { kind: "modelfile", model: undefined })}>
          New Modelfile …
        </button>
      </p>
    </section>
  );
}

/** What is in use comes first. */
function rankOf({ is_default: isDefault, state }: ListedModel): number {
  return isDefault ? 0 : state === "loaded" ? 1 : 2;
}

/** Scrolls to a part of the room, and goes on from there with the keyboard. */
function goTo(id: string): void {
  const heading = document.getElementById(id);
  heading?.scrollIntoView();
  heading?.focus({ preventScroll: true });
}
