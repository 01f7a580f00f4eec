import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { toError } from "../../errors/to-error.ts";
import type { ListedModel } from "../daemon-api.ts";
import { refresh } from "../page-state.ts";
import { Dialog } from "./dialog.tsx";
import { LoadDialog } from "./load-dialog.tsx";
import { deletionOf } from "./model-facts.ts";
import { ModelfileDialog } from "./modelfile-dialog.tsx";
import { copyModel, deleteModel } from "./models-api.ts";
import { inBytes } from "./quantities.ts";
import { doing, openDialog } from "./room-state.ts";

function close(): void {
  openDialog.value = undefined;
}

/** The question that is open, if one is. */
export function OpenDialog(): JSX.Element | null {
  const open = openDialog.value;
  if (!open) return null;
  if (open.kind === "modelfile") return <ModelfileDialog model={open.model} onClose={close} />;
  if (open.kind === "load") return <LoadDialog model={open.model} onClose={close} />;
  return open.kind === "copy" ? <CopyDialog model={open.model} /> : <DeleteDialog model={open.model} />;
}

function DeleteDialog({ model }: { readonly model: ListedModel }): JSX.Element {
  const { alias, state } = model;
  return (
    <Dialog title={`Delete ${alias}?`} onClose={close}>
      <p>{deletionOf(model, inBytes(model.size_bytes ?? 0))}</p>
      {state === "loaded" && <p>It is unloaded first; answers that it is giving end.</p>}
      <p class="buttons">
        <button
          type="button"
          class="danger"
          onClick={() => {
            close();
            void doing(alias, "deleting …", () => deleteModel(alias));
          }}
        >
          Delete
        </button>
        <button type="button" autofocus onClick={close}>
          Keep
        </button>
      </p>
    </Dialog>
  );
}

function CopyDialog({ model: { alias } }: { readonly model: ListedModel }): JSX.Element {
  // Names have letters, digits and . _ - only.
  const name = useSignal(`${alias.replace(/^hf:/, "").replaceAll(/[^\w.-]+/g, "-")}-copy`);
  const problem = useSignal("");
  const copy = async (): Promise<void> => {
    try {
      await copyModel(alias, name.value.trim());
      close();
      await refresh();
    } catch (error) {
      problem.value = toError(error).message;
    }
  };
  return (
    <Dialog title={`Copy ${alias}`} onClose={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void copy();
        }}
      >
        <label>
          Name of the copy
          <input
            name="name"
            required
            value={name}
            onInput={({ currentTarget }) => (name.value = currentTarget.value)}
          />
        </label>
        <p>The copy shares the files of the model, so it takes no space. Its Modelfile can be changed.</p>
        <p class="wrong" role="alert">
          {problem}
        </p>
        <p class="buttons">
          <button type="submit" class="main">
            Copy
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
        </p>
      </form>
    </Dialog>
  );
}
