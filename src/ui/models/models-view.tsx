import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { Button } from "../controls.tsx";
import type { ListedModel } from "../daemon-api.ts";
import { models } from "../page-state.ts";
import { IN_BROWSER } from "../stored-models.ts";
import { BrowserModels } from "./browser-models.tsx";
import { GetModel } from "./get-model.tsx";
import { ModelCard } from "./model-card.tsx";
import { OpenDialog } from "./model-dialogs.tsx";
import { PullList } from "./pull-list.tsx";
import { openDialog } from "./models-api.ts";
import { storePickedFiles } from "./store-files.ts";

const SECTIONS = [
  ["installed-title", "On this machine"],
  ["get-title", "Get a model"],
  ["browser-title", "In this browser"],
] as const;

async function storeFiles(files: readonly File[]): Promise<void> {
  if (await storePickedFiles(files)) goToSection("browser-title");
}

/** The models of the daemon, of the hub and of the browser. */
export function ModelsView(): JSX.Element {
  const isDraggedOver = useSignal(false);
  return (
    <main
      id="models"
      class={isDraggedOver.value ? "over" : ""}
      onDragOver={(event) => {
        if (!event.dataTransfer?.types.includes("Files")) return;
        event.preventDefault();
        isDraggedOver.value = true;
      }}
      onDragLeave={({ relatedTarget, currentTarget }) => {
        if (!(relatedTarget instanceof Node && currentTarget.contains(relatedTarget)))
          isDraggedOver.value = false;
      }}
      onDrop={(event) => {
        event.preventDefault();
        isDraggedOver.value = false;
        void storeFiles([...(event.dataTransfer?.files ?? [])]);
      }}
    >
      <p class="buttons places">
        {SECTIONS.map(([id, label]) => (
          <Button key={id} onClick={() => goToSection(id)}>
            {label}
          </Button>
        ))}
      </p>
      <PullList />
      <Installed />
      <GetModel />
      <BrowserModels onFiles={storeFiles} />
      <OpenDialog />
    </main>
  );
}

function Installed(): JSX.Element {
  // The list of downloads shows models that are not complete yet.
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
          .toSorted((one, other) => sortRank(one) - sortRank(other) || one.alias.localeCompare(other.alias))
          .map((model) => (
            <ModelCard key={model.alias} model={model} />
          ))}
      </ul>
      <p class="buttons">
        <Button onClick={() => (openDialog.value = { kind: "modelfile", model: undefined })}>
          New Modelfile …
        </Button>
      </p>
    </section>
  );
}

/** Sorts the default model first, then loaded models. */
function sortRank({ is_default: isDefault, state }: ListedModel): number {
  return isDefault ? 0 : state === "loaded" ? 1 : 2;
}

/** Scrolls to a section and moves the keyboard focus there. */
function goToSection(id: string): void {
  const heading = document.getElementById(id);
  heading?.scrollIntoView();
  heading?.focus({ preventScroll: true });
}
