import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { type ListedModel, loadModel, type LoadSettings } from "../daemon-api.ts";
import { showProblem } from "../page-state.ts";
import { Button, Dialog, Form } from "../controls.tsx";
import { canChat } from "./model-facts.ts";
import { closeDialog, runAction, readGpu, type ModelDetail, readModel, unloadModel } from "./models-api.ts";
import { formatInteger } from "../../json/quantities.ts";

/** Minimum context size that engines accept, in tokens. */
const MIN_CONTEXT = 16;

/** Dialog with the settings for loading a model. */
export function LoadDialog({ model }: { readonly model: ListedModel }): JSX.Element {
  const { alias, state, context_size: context = 0, gpu_layers: layers = 0 } = model;
  const detail = useSignal<ModelDetail | undefined>(undefined);
  const gpu = useSignal("");
  const settings = useSignal<LoadSettings>({});
  useEffect(() => {
    readModel(alias).then((found) => (detail.value = found), showProblem);
    readGpu().then((found) => (gpu.value = describeGpu(found)), showProblem);
  }, [alias]);
  const set = (name: "context_size" | "gpu_layers", field: HTMLInputElement): void => {
    const { [name]: _old, ...others } = settings.value;
    settings.value = field.value === "" ? others : { ...others, [name]: field.valueAsNumber };
  };
  const load = async (): Promise<void> => {
    closeDialog();
    await runAction(alias, "loading …", async () => {
      if (state === "loaded") await unloadModel(alias);
      await loadModel(alias, settings.value);
    });
  };
  const layerCount = detail.value && detail.value.block_count + 1;
  return (
    <Dialog title={`Load ${alias}`} onClose={closeDialog}>
      <Form onSubmit={load}>
        <label>
          Context, in tokens
          <input
            name="context_size"
            type="number"
            min={MIN_CONTEXT}
            step={1}
            placeholder={`${context}, ${state === "loaded" ? "as now" : "by default"}`}
            onInput={({ currentTarget }) => set("context_size", currentTarget)}
          />
          <small>
            How much of a conversation it sees at once. More needs more memory.
            {detail.value &&
              detail.value.trained_context_size > 0 &&
              ` It was trained for ${formatInteger(detail.value.trained_context_size)}.`}
          </small>
        </label>
        <label>
          Layers on the GPU
          <input
            name="gpu_layers"
            type="number"
            min={-1}
            step={1}
            placeholder={layers === 0 ? "as many as fit" : String(layers)}
            onInput={({ currentTarget }) => set("gpu_layers", currentTarget)}
          />
          <small>
            −1 for all{layerCount !== undefined && ` ${layerCount}`}, 0 for none. {gpu}
          </small>
        </label>
        {canChat(model) && (
          <label>
            <input
              name="set_default"
              type="checkbox"
              checked={model.is_default}
              disabled={model.is_default}
              onChange={({ currentTarget }) =>
                (settings.value = { ...settings.value, set_default: currentTarget.checked })
              }
            />{" "}
            Make it the default, for requests that name no model
          </label>
        )}
        {state === "loaded" && <p>It is unloaded first; answers that it is giving end.</p>}
        <p class="buttons">
          <button type="submit" class="main">
            Load
          </button>
          <Button onClick={closeDialog}>Cancel</Button>
        </p>
      </Form>
    </Dialog>
  );
}

function describeGpu({ adapter, problem = "" }: Awaited<ReturnType<typeof readGpu>>): string {
  return adapter === undefined ? `This machine uses no GPU: ${problem}` : `The GPU is ${adapter}.`;
}
