import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { type ListedModel, loadModel, request } from "../daemon-api.ts";
import { models, refresh, showProblem } from "../page-state.ts";

const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

/** The models of the daemon. */
export function ModelsRoom(): JSX.Element {
  return (
    <main id="models">
      <h2>Models</h2>
      <ul>
        {models.value.map((model) => (
          <Entry key={model.alias} model={model} />
        ))}
      </ul>
    </main>
  );
}

function Entry({ model }: { readonly model: ListedModel }): JSX.Element {
  const isBusy = useSignal(false);
  const { alias, state, parameters = 0, context_size: context = 0, size_bytes: size = 0 } = model;
  const can = Object.entries(model.capabilities ?? {}).flatMap(([name, has]) => (has === true ? [name] : []));
  const toggle = async (): Promise<void> => {
    isBusy.value = true;
    await toggleModel(model);
    isBusy.value = false;
  };
  return (
    <li>
      <strong>{alias}</strong> {model.is_default && "(default) "}
      <span>
        {state} · {COMPACT.format(parameters)} weights · {COMPACT.format(size)}B · {context} tokens of context
        {can.length > 0 && ` · ${can.join(", ")}`}
      </span>
      {(state === "loaded" || state === "available") && (
        <button type="button" disabled={isBusy} onClick={() => void toggle()}>
          {state === "loaded" ? "Unload" : "Load"}
        </button>
      )}
    </li>
  );
}

/** Loads a model in the daemon, or frees its memory. */
async function toggleModel({ alias, state }: ListedModel): Promise<void> {
  try {
    if (state === "loaded")
      await request(`/api/models/${encodeURIComponent(alias)}/unload`, { method: "POST" });
    else await loadModel(alias);
  } catch (error) {
    showProblem(error);
  }
  await refresh();
}
