import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { chooseModel } from "../chat/chat-state.ts";
import type { ListedModel } from "../daemon-api.ts";
import { abilitiesOf, canChat, originOf, purposeOf } from "./model-facts.ts";
import { ModelDetails } from "./model-details.tsx";
import { loadWith, makeDefault, unloadModel } from "./models-api.ts";
import { inBytes, inFull, inShort } from "./quantities.ts";
import { doing, doings, openDialog } from "./room-state.ts";

/** A model of the daemon, and what can be done with it. */
export function ModelCard({ model }: { readonly model: ListedModel }): JSX.Element {
  const showsMore = useSignal(false);
  const { alias, state } = model;
  const what = doings.value.get(alias);
  const isLoaded = state === "loaded";
  const isSteady = isLoaded || state === "available";
  return (
    <li class="card" data-model={alias}>
      <h3>
        {alias}
        {model.is_default && <span class="badge">default</span>}
        <span class={`badge ${isLoaded ? "on" : ""}`}>
          {what ?? (isLoaded ? "loaded" : stateInWords(state))}
        </span>
      </h3>
      <Facts model={model} />
      <p class="buttons">
        {canChat(model) && (
          <button type="button" class="main" onClick={() => chatWith(alias)}>
            Chat
          </button>
        )}
        {isSteady && (
          <button
            type="button"
            disabled={what !== undefined}
            onClick={() =>
              void (isLoaded
                ? doing(alias, "unloading …", () => unloadModel(alias))
                : doing(alias, "loading …", () => loadWith(alias, {})))
            }
          >
            {isLoaded ? "Unload" : "Load"}
          </button>
        )}
        {isSteady && (
          <button
            type="button"
            disabled={what !== undefined}
            onClick={() => (openDialog.value = { kind: "load", model })}
          >
            {isLoaded ? "Reload …" : "Load with …"}
          </button>
        )}
        <button
          type="button"
          class="more"
          aria-expanded={showsMore.value}
          onClick={() => (showsMore.value = !showsMore.value)}
        >
          Details
        </button>
      </p>
      {showsMore.value && (
        <>
          <p class="buttons">
            {canChat(model) && !model.is_default && (
              <button
                type="button"
                title="Requests that name no model get the default"
                onClick={() => void doing(alias, "becoming the default …", () => makeDefault(alias))}
              >
                Make default
              </button>
            )}
            <button type="button" onClick={() => (openDialog.value = { kind: "copy", model })}>
              Copy …
            </button>
            <button type="button" onClick={() => (openDialog.value = { kind: "modelfile", model })}>
              Modelfile …
            </button>
            <button
              type="button"
              class="danger"
              onClick={() => (openDialog.value = { kind: "delete", model })}
            >
              Delete …
            </button>
          </p>
          <ModelDetails alias={alias} />
        </>
      )}
    </li>
  );
}

function Facts({ model }: { readonly model: ListedModel }): JSX.Element {
  const { parameters = 0, size_bytes: size = 0, context_size: context = 0, quantization } = model;
  const { license, memory_bytes: memory } = model;
  const facts = [
    inBytes(size),
    quantization,
    `${inShort(parameters)} weights`,
    `${inFull(context)} tokens of context`,
    license !== undefined && `${license} license`,
    memory !== undefined && `uses ${inBytes(memory)} of memory`,
  ].filter((fact) => fact !== undefined && fact !== false && fact !== "");
  const purpose = purposeOf(model);
  return (
    <>
      <p class="facts">{facts.join(" · ")}</p>
      <p class="origin">{originOf(model)}</p>
      {purpose !== undefined && <p>{purpose}</p>}
      <ul class="chips" aria-label={`What ${model.alias} can do`}>
        {abilitiesOf(model).map((ability) => (
          <li key={ability}>{ability}</li>
        ))}
      </ul>
    </>
  );
}

function stateInWords(state: string): string {
  return state === "available" ? "on disk" : `${state} …`;
}

/** Goes to the chat with a model. */
export function chatWith(alias: string): void {
  chooseModel(alias);
  location.hash = "";
}
