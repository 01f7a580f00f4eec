import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { models, toggleModel } from "./chat-state.ts";
import type { ListedModel } from "../daemon-api.ts";

const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

/** The models of the daemon. */
export function ModelList(): JSX.Element {
  return (
    <section id="models" aria-label="Models">
      <h2>Models</h2>
      <ul>
        {models.value.map((model) => (
          <Entry key={model.alias} model={model} />
        ))}
      </ul>
    </section>
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
