import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";
import { showProblem } from "../page-state.ts";
import { type ModelDetail, showModel } from "./models-api.ts";
import { inDays, inFull } from "./quantities.ts";

/** What is known of a model beyond the list; it is asked for when this is shown. */
export function ModelDetails({ alias }: { readonly alias: string }): JSX.Element {
  const detail = useSignal<ModelDetail | undefined>(undefined);
  useEffect(() => {
    showModel(alias).then((found) => (detail.value = found), showProblem);
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
        {inFull(found.context_size)} tokens; trained for {inFull(found.trained_context_size)}
      </Fact>
      <Fact name="Layers">
        {inFull(found.block_count)}, with vectors of {inFull(found.embedding_size)} numbers
        {found.gpu_layers !== 0 && `; ${found.gpu_layers < 0 ? "all" : found.gpu_layers} on the GPU`}
      </Fact>
      <Fact name="Vocabulary">{inFull(found.vocab_size)} tokens</Fact>
      <Fact name="Changed">{inDays(found.modified_at)}</Fact>
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
      {found.system !== undefined && <Text name="System prompt" text={found.system} />}
      {found.template !== undefined && <Text name="Chat template" text={found.template} />}
      {found.license !== undefined && <Text name="License" text={found.license} />}
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

/** Short enough to be read where it stands. */
const SHORT = 80;

/** A text that may be long. */
function Text({ name, text }: { readonly name: string; readonly text: string }): JSX.Element {
  if (text.length <= SHORT && !text.includes("\n")) return <Fact name={name}>{text}</Fact>;
  return (
    <Fact name={name}>
      <details>
        <summary>{inFull(text.length)} characters</summary>
        <pre tabIndex={0} aria-label={name}>
          {text}
        </pre>
      </details>
    </Fact>
  );
}
