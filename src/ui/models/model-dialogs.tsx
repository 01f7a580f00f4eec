import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { toError } from "../../errors/service-error.ts";
import type { ListedModel } from "../daemon-api.ts";
import { formatBytes } from "../../json/quantities.ts";
import { models, refresh, showProblem } from "../page-state.ts";
import { Button, DeletionDialog, Dialog, Form, bound } from "../controls.tsx";
import { LoadDialog } from "./load-dialog.tsx";
import { describeDeletion } from "./model-facts.ts";
import {
  closeDialog,
  copyModel,
  createModel,
  deleteModel,
  runAction,
  openDialog,
  readModelfile,
} from "./models-api.ts";

/** The open dialog, if there is one. */
export function OpenDialog(): JSX.Element | null {
  const open = openDialog.value;
  if (!open) return null;
  if (open.kind === "modelfile") return <ModelfileDialog model={open.model} />;
  if (open.kind === "load") return <LoadDialog model={open.model} />;
  return open.kind === "copy" ? <CopyDialog model={open.model} /> : <DeleteDialog model={open.model} />;
}

function DeleteDialog({ model }: { readonly model: ListedModel }): JSX.Element {
  const { alias, state } = model;
  return (
    <DeletionDialog
      title={`Delete ${alias}?`}
      onDelete={() => void runAction(alias, "deleting …", () => deleteModel(alias))}
      onClose={closeDialog}
    >
      <p>{describeDeletion(model, formatBytes(model.size_bytes ?? 0))}</p>
      {state === "loaded" && <p>It is unloaded first; answers that it is giving end.</p>}
    </DeletionDialog>
  );
}

function CopyDialog({ model: { alias } }: { readonly model: ListedModel }): JSX.Element {
  // Model names consist of letters, digits and . _ - only.
  const name = useSignal(`${alias.replace(/^hf:/, "").replaceAll(/[^\w.-]+/g, "-")}-copy`);
  const problem = useSignal("");
  const copy = async (): Promise<void> => {
    try {
      await copyModel(alias, name.value.trim());
      closeDialog();
      await refresh();
    } catch (error) {
      problem.value = toError(error).message;
    }
  };
  return (
    <Dialog title={`Copy ${alias}`} onClose={closeDialog}>
      <Form onSubmit={copy}>
        <label>
          Name of the copy
          <input name="name" required {...bound(name)} />
        </label>
        <p>The copy shares the files of the model, so it takes no space. Its Modelfile can be changed.</p>
        <p class="wrong" role="alert">
          {problem}
        </p>
        <p class="buttons">
          <button type="submit" class="main">
            Copy
          </button>
          <Button onClick={closeDialog}>Cancel</Button>
        </p>
      </Form>
    </Dialog>
  );
}

const MIN_ROWS = 12;

/** Editor of the Modelfile of a model, or of a new one. */
function ModelfileDialog({ model }: { readonly model: ListedModel | undefined }): JSX.Element {
  const name = useSignal(defaultName(model));
  const text = useSignal(model ? "" : exampleModelfile());
  const problem = useSignal("");
  const isSaving = useSignal(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const gutter = useRef<HTMLPreElement>(null);
  useEffect(() => {
    if (model) readModelfile(model.alias).then((found) => (text.value = found), showProblem);
  }, [model?.alias]);
  const wrongLine = errorLine(problem.value);
  const create = async (): Promise<void> => {
    isSaving.value = true;
    problem.value = "";
    try {
      await createModel(name.value.trim(), text.value);
      closeDialog();
      await refresh();
    } catch (error) {
      problem.value = toError(error).message;
      const line = errorLine(problem.value);
      if (line !== undefined && area.current) selectLine(area.current, line);
    } finally {
      isSaving.value = false;
    }
  };
  const lines = text.value.split("\n");
  const replaces = models.value.some(
    ({ alias, source }) => alias === name.value.trim() && source === "modelfile",
  );
  return (
    <Dialog title={model ? `Modelfile of ${model.alias}` : "New Modelfile"} onClose={closeDialog} isWide>
      <Form onSubmit={create}>
        <label>
          Name of the model that it makes
          <input name="name" required {...bound(name)} />
        </label>
        <div class="code">
          <pre ref={gutter} aria-hidden="true">
            {lines.map((_line, index) => (
              <span key={index} class={index + 1 === wrongLine ? "wrong" : ""}>
                {index + 1}
                {"\n"}
              </span>
            ))}
          </pre>
          <textarea
            ref={area}
            name="modelfile"
            aria-label="Modelfile"
            aria-invalid={wrongLine !== undefined}
            aria-describedby="modelfile-problem"
            rows={MIN_ROWS}
            wrap="off"
            spellcheck={false}
            {...bound(text)}
            onScroll={({ currentTarget }) => {
              if (gutter.current) gutter.current.scrollTop = currentTarget.scrollTop;
            }}
          />
        </div>
        <p id="modelfile-problem" class="wrong" role="alert">
          {problem}
        </p>
        <p class="buttons">
          <button type="submit" class="main" disabled={isSaving.value}>
            {replaces ? "Replace the model" : "Create the model"}
          </button>
          <Button onClick={closeDialog}>Close</Button>
          <small>
            FROM names a model on disk; PARAMETER, SYSTEM, TEMPLATE and others change it. Its files are
            shared.
          </small>
        </p>
      </Form>
    </Dialog>
  );
}

/** Suggests a new name, unless the model was created from a Modelfile and can be replaced. */
function defaultName(model: ListedModel | undefined): string {
  if (!model) return "";
  return model.source === "modelfile" ? model.alias : `${model.alias.split(/[/:]/).at(-1)}-mine`;
}

function exampleModelfile(): string {
  const base = models.value.find(({ is_default: isDefault }) => isDefault)?.alias ?? "daybreak-mini";
  return `FROM ${base}
PARAMETER temperature 0.7
SYSTEM You are a friendly assistant who answers in one sentence.
`;
}

/** Returns the line number in an error of the daemon, counted from 1. */
function errorLine(problem: string): number | undefined {
  const line = /^Modelfile, line (\d+):/.exec(problem)?.[1];
  return line === undefined ? undefined : Number(line);
}

/** Selects a line, counted from 1. */
function selectLine(area: HTMLTextAreaElement, line: number): void {
  const lines = area.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  area.focus();
  area.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
}
