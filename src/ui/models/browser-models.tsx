import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";
import { setInTab } from "../chat/chat-state.ts";
import { chosenDaemon } from "../daemons.ts";
import { formatBytes } from "../../json/quantities.ts";
import { refreshStored, storage, storageProblem, storedModels } from "../stored-models.ts";
import { Button, DeletionDialog, FileButton } from "../controls.tsx";
import { FromHub } from "./from-hub.tsx";
import { chatWith } from "./model-card.tsx";
import { deleteStored, isDaemonModel, storePickedFiles } from "./store-files.ts";

/** The view Models of a page without a daemon. */
export function BrowserModelsView(): JSX.Element {
  return (
    <main id="models">
      <BrowserModels onFiles={storePickedFiles}>
        <FromHub />
      </BrowserModels>
    </main>
  );
}

interface BrowserModelsProps {
  readonly onFiles: (files: readonly File[]) => unknown;
  /** Further forms for adding models. */
  readonly children?: ComponentChildren;
}

/** The models in the browser's storage, and forms for adding more. */
export function BrowserModels({ onFiles, children }: BrowserModelsProps): JSX.Element {
  const toDelete = useSignal<string | undefined>(undefined);
  const chosen = toDelete.value;
  const problem = storageProblem.value;
  // The chat stores models, too.
  useEffect(() => void refreshStored(), []);
  return (
    <section aria-labelledby="browser-title">
      <h2 id="browser-title" tabIndex={-1}>
        In this browser
      </h2>
      <p>
        {chosenDaemon() &&
          'The engine can run in this tab instead of the daemon: choose "In this tab" in the chat. '}
        Models for this tab's engine are stored in the browser; nothing leaves your machine.
      </p>
      {problem === "" ? (
        <>
          {children}
          <p class="drop">
            <FileButton id="gguf" accept=".gguf" multiple onFiles={onFiles}>
              Choose a .gguf file …
            </FileButton>{" "}
            or drag it onto this page. Of a model in several files, choose all.
          </p>
          <ul id="stored" class="cards">
            {storedModels.value.map(({ name, size, stored }) => (
              <li key={name} class="card" data-stored={name}>
                <h3>{name}</h3>
                <p class="facts">
                  {formatBytes(size)}
                  {stored < size && `, of which ${formatBytes(stored)} have arrived`}
                  {" · "}
                  {isDaemonModel(name) ? "copy of the daemon's" : "only here"}
                </p>
                <p class="buttons">
                  <Button class="main" onClick={() => chatInTab(name)}>
                    Chat in this tab
                  </Button>
                  <Button class="danger" onClick={() => (toDelete.value = name)}>
                    Delete …
                  </Button>
                </p>
              </li>
            ))}
          </ul>
          {storedModels.value.length === 0 && <p class="facts">No model is stored in this browser yet.</p>}
          <StorageUsage />
        </>
      ) : (
        <p class="note">{problem}</p>
      )}
      {chosen !== undefined && (
        <DeletionDialog
          title={`Delete ${chosen} from this browser?`}
          onDelete={() => void deleteStored(chosen)}
          onClose={() => (toDelete.value = undefined)}
        >
          <p>
            {isDaemonModel(chosen)
              ? "The daemon keeps its own files. The next chat in this tab takes them from there again."
              : "The file that it was made from stays where it is. To have it here again, choose that file again."}
          </p>
        </DeletionDialog>
      )}
    </section>
  );
}

function StorageUsage(): JSX.Element | null {
  if (!storage.value) return null;
  const { used, free } = storage.value;
  return (
    <p id="storage" class="facts">
      <meter aria-label="The browser's storage" value={used} max={used + free || 1} /> This site uses{" "}
      {formatBytes(used)} of the browser's storage; {formatBytes(free)} are free.
    </p>
  );
}

function chatInTab(name: string): void {
  chatWith(name);
  setInTab(true);
}
