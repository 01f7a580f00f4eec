import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";
import { Button } from "../controls.tsx";
import { chooseModel } from "../chat/chat-state.ts";
import { type ListedModel, loadModel } from "../daemon-api.ts";
import { formatBytes, formatCount, formatDate, formatInteger } from "../../json/quantities.ts";
import { showProblem } from "../page-state.ts";
import { capabilityLabels, canChat, describeOrigin, purposeNote } from "./model-facts.ts";
import {
  runAction,
  activities,
  makeDefault,
  type ModelDetail,
  openDialog,
  readModel,
  unloadModel,
} from "./models-api.ts";

/** A model of the daemon, with its buttons. */
export function ModelCard({ model }: { readonly model: ListedModel }): JSX.Element {
  const showsMore = useSignal(false);
  const { alias, state } = model;
  const activity = activities.value.get(alias);
  const isLoaded = state === "loaded";
  const isStable = isLoaded || state === "available";
  return (
    <li class="card" data-model={alias}>
      <h3>
        {alias}
        {model.is_default && <span class="badge">default</span>}
        <span class={`badge ${isLoaded ? "on" : ""}`}>
          {activity ?? (isLoaded ? "loaded" : describeState(state))}
        </span>
      </h3>
      <Facts model={model} />
      <p class="buttons">
        {canChat(model) && (
          <Button class="main" onClick={() => chatWith(alias)}>
            Chat
          </Button>
        )}
        {isStable && (
          <Button
            disabled={activity !== undefined}
            onClick={() =>
              void (isLoaded
                ? runAction(alias, "unloading …", () => unloadModel(alias))
                : runAction(alias, "loading …", () => loadModel(alias)))
            }
          >
            {isLoaded ? "Unload" : "Load"}
          </Button>
        )}
        {isStable && (
          <Button
            disabled={activity !== undefined}
            onClick={() => (openDialog.value = { kind: "load", model })}
          >
            {isLoaded ? "Reload …" : "Load with …"}
          </Button>
        )}
        <Button
          class="more"
          aria-expanded={showsMore.value}
          onClick={() => (showsMore.value = !showsMore.value)}
        >
          Details
        </Button>
      </p>
      {showsMore.value && (
        <>
          <p class="buttons">
            {canChat(model) && !model.is_default && (
              <Button
                title="Requests that name no model get the default"
                onClick={() => void runAction(alias, "becoming the default …", () => makeDefault(alias))}
              >
                Make default
              </Button>
            )}
            <Button onClick={() => (openDialog.value = { kind: "copy", model })}>Copy …</Button>
            <Button onClick={() => (openDialog.value = { kind: "modelfile", model })}>Modelfile …</Button>
            <Button class="danger" onClick={() => (openDialog.value = { kind: "delete", model })}>
              Delete …
            </Button>
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
    formatBytes(size),
    quantization,
    `${formatCount(parameters)} weights`,
    `${formatInteger(context)} tokens of context`,
    license !== undefined && `${license} license`,
    memory !== undefined && `uses ${formatBytes(memory)} of memory`,
  ].filter((fact) => fact !== undefined && fact !== false && fact !== "");
  const purpose = purposeNote(model);
  return (
    <>
      <p class="facts">{facts.join(" · ")}</p>
      <p class="origin">{describeOrigin(model)}</p>
      {purpose !== undefined && <p>{purpose}</p>}
      <ul class="chips" aria-label={`What ${model.alias} can do`}>
        {capabilityLabels(model).map((ability) => (
          <li key={ability}>{ability}</li>
        ))}
      </ul>
    </>
  );
}

function describeState(state: string): string {
  return state === "available" ? "on disk" : `${state} …`;
}

/** Opens the chat with a model. */
export function chatWith(alias: string): void {
  chooseModel(alias);
  location.hash = "";
}

/** Details of a model, requested when they are opened. */
function ModelDetails({ alias }: { readonly alias: string }): JSX.Element {
  const detail = useSignal<ModelDetail | undefined>(undefined);
  useEffect(() => {
    readModel(alias).then((found) => (detail.value = found), showProblem);
  }, [alias]);
  if (!detail.value) return <p>Loading …</p>;
  const found = detail.value;
  const settings = Object.entries(found.settings);
  return (
    <dl class="details">
      <Fact name="Architecture">
        {found.architecture}
        {found.name !== undefined && `, ${found.name}`}
      </Fact>
      <Fact name="Context">
        {formatInteger(found.context_size)} tokens; trained for {formatInteger(found.trained_context_size)}
      </Fact>
      <Fact name="Layers">
        {formatInteger(found.block_count)}, with vectors of {formatInteger(found.embedding_size)} numbers
        {found.gpu_layers !== 0 && `; ${found.gpu_layers < 0 ? "all" : found.gpu_layers} on the GPU`}
      </Fact>
      <Fact name="Vocabulary">{formatInteger(found.vocab_size)} tokens</Fact>
      <Fact name="Changed">{formatDate(found.modified_at)}</Fact>
      {settings.length > 0 && (
        <Fact name="Settings">
          {settings.map(([name, set]) => `${name} ${JSON.stringify(set)}`).join(", ")}
        </Fact>
      )}
      {found.notes && <Fact name="Without effect">{found.notes.join(" ")}</Fact>}
      <Fact name="Files">
        {[...found.files, ...(found.projector === undefined ? [] : [found.projector])].map((file) => (
          <code key={file}>{file}</code>
        ))}
      </Fact>
      {found.system !== undefined && <LongText name="System prompt" text={found.system} />}
      {found.template !== undefined && <LongText name="Chat template" text={found.template} />}
      {found.license !== undefined && <LongText name="License" text={found.license} />}
    </dl>
  );
}

interface FactProps {
  readonly name: string;
  readonly children: ComponentChildren;
}

function Fact({ name, children }: FactProps): JSX.Element {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

/** Longer texts are collapsed. */
const MAX_INLINE_LENGTH = 80;

/** A text that is collapsed if it is long. */
function LongText({ name, text }: { readonly name: string; readonly text: string }): JSX.Element {
  if (text.length <= MAX_INLINE_LENGTH && !text.includes("\n")) return <Fact name={name}>{text}</Fact>;
  return (
    <Fact name={name}>
      <details>
        <summary>{formatInteger(text.length)} characters</summary>
        <pre tabIndex={0} aria-label={name}>
          {text}
        </pre>
      </details>
    </Fact>
  );
}
