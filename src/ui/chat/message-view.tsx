import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { AnswerToken } from "../../api/native/native-answer-fields.ts";
import { copyText } from "../browser-actions.ts";
import type { ListedModel } from "../daemon-api.ts";
import { Markdown } from "../markdown/markdown.tsx";
import { activity, models as pageStateModels } from "../page-state.ts";
import { IN_BROWSER } from "../stored-models.ts";
import { answer, ask, continueAnswer, type Source } from "./answering.ts";
import { answering, current, keep, running } from "./chat-state.ts";
import { type AnswerSummary, type ChatMessage, showBranch, siblings } from "./conversation.ts";
import { ToolCallView } from "./tool-call-view.tsx";

/** A question or an answer, with what can be done with it. */
export function MessageView({ message }: { readonly message: ChatMessage }): JSX.Element {
  const isEdited = useSignal(false);
  const showsTokens = useSignal(false);
  const showsOthers = useSignal(false);
  const isRunning = running.value !== undefined;
  const isAnswer = message.role === "assistant";
  return (
    <article class={`message ${message.role}`} aria-label={isAnswer ? sourceOf(message) : "You"}>
      {message.thinking !== undefined && (
        <details class="thinking">
          <summary>Thinking</summary>
          {message.thinking}
        </details>
      )}
      {message.images?.map((url) => (
        <img key={url} src={url} alt="Sent with the message" />
      ))}
      {message.files?.map(({ name, text }) => (
        <details key={name} class="attachment">
          <summary>{name}</summary>
          <pre>{text}</pre>
        </details>
      ))}
      {isEdited.value ? (
        <Editor message={message} onDone={() => (isEdited.value = false)} />
      ) : !isAnswer ? (
        <p class="text">{message.content}</p>
      ) : showsOthers.value ? (
        <SideBySide message={message} />
      ) : isRunning && message.content === "" && message.problem === undefined ? (
        <p class="waiting">{activity.value || "…"}</p>
      ) : showsTokens.value && message.tokens ? (
        <TokenView tokens={message.tokens} />
      ) : (
        <Markdown text={message.content} />
      )}
      {message.toolCalls?.map((call) => (
        <ToolCallView key={call.id} call={call} />
      ))}
      {message.problem !== undefined && <p class="failed">{message.problem}</p>}
      {message.summary && !showsOthers.value && <Summary summary={message.summary} message={message} />}
      <p class="actions">
        <Versions message={message} />
        <button type="button" onClick={() => copyText(message.content)}>
          Copy
        </button>
        {isAnswer ? (
          <>
            <AnswerAgain message={message} />
            <button
              class="continue"
              type="button"
              title="Lets the model go on where this answer ends"
              disabled={isRunning || message.content === ""}
              onClick={() => void continueAnswer(message)}
            >
              Continue
            </button>
            {message.tokens && (
              <button
                class="tokens"
                type="button"
                aria-pressed={showsTokens}
                onClick={() => (showsTokens.value = !showsTokens.value)}
              >
                Tokens
              </button>
            )}
            {siblings(current.value, message).length > 1 && (
              <button
                class="beside"
                type="button"
                aria-pressed={showsOthers}
                onClick={() => (showsOthers.value = !showsOthers.value)}
              >
                Side by side
              </button>
            )}
          </>
        ) : (
          <button class="edit" type="button" disabled={isRunning} onClick={() => (isEdited.value = true)}>
            Edit
          </button>
        )}
      </p>
    </article>
  );
}

/** The model of an answer, and where it ran. */
function sourceOf({ model = "Answer", isFromTab }: ChatMessage): string {
  return isFromTab === true ? `${model}, in this tab` : model;
}

/** All answers to the same question, in columns. */
function SideBySide({ message }: { readonly message: ChatMessage }): JSX.Element {
  return (
    <div class="beside-each-other" tabIndex={0} role="group" aria-label="Answers side by side">
      {siblings(current.value, message).map((each) => (
        <section key={each.id} aria-label={sourceOf(each)}>
          <Markdown text={each.content} />
          {each.problem !== undefined && <p class="failed">{each.problem}</p>}
          {each.summary && <Summary summary={each.summary} message={each} />}
          {each.id === message.id ? (
            <small>The conversation goes on from this one.</small>
          ) : (
            <button type="button" onClick={() => show(each)}>
              Go on from this one
            </button>
          )}
        </section>
      ))}
    </div>
  );
}

function Summary({ summary, message }: SummaryProps): JSX.Element {
  const { promptTokens, cachedTokens = 0, completionTokens, firstMs, tokensPerSecond, doneReason } = summary;
  const context = pageStateModels.value.find(({ alias }) => alias === message.model)?.context_size ?? 0;
  const used = promptTokens + completionTokens;
  const speed = tokensPerSecond === undefined ? "" : ` · ${tokensPerSecond.toFixed(1)} tokens/s`;
  return (
    <small class="summary">
      {completionTokens} tokens{speed} · first after {(firstMs / 1000).toFixed(2)} s
      {cachedTokens > 0 && ` · ${cachedTokens} of ${promptTokens} prompt tokens reused`}
      {` · ${sourceOf(message)}`}
      {context > 0 && (
        <>
          {" "}
          <meter min={0} max={context} value={used} title={`${used} of ${context} tokens of context`} />
        </>
      )}
      {doneReason === "length" && " · ended at the limit of tokens"}
    </small>
  );
}

function Versions({ message }: { readonly message: ChatMessage }): JSX.Element | null {
  const all = siblings(current.value, message);
  if (all.length < 2) return null;
  const at = all.findIndex(({ id }) => id === message.id);
  return (
    <span class="versions">
      <button type="button" title="Version before" disabled={at === 0} onClick={() => show(all[at - 1])}>
        ‹
      </button>
      {` ${at + 1} of ${all.length} `}
      <button
        type="button"
        title="Next version"
        disabled={at === all.length - 1}
        onClick={() => show(all[at + 1])}
      >
        ›
      </button>
    </span>
  );
}

function Editor({
  message,
  onDone,
}: {
  readonly message: ChatMessage;
  readonly onDone: () => void;
}): JSX.Element {
  const text = useSignal(message.content);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  const { images = [], files = [] } = message;
  return (
    <form
      class="editor"
      onSubmit={(event) => {
        event.preventDefault();
        onDone();
        void ask(text.value, { images, files }, message.parent);
      }}
    >
      <textarea
        ref={field}
        rows={3}
        aria-label="Changed message"
        value={text}
        onInput={({ currentTarget }) => (text.value = currentTarget.value)}
      />
      <p class="buttons">
        <button class="main" type="submit">
          Send as a new branch
        </button>
        <button type="button" onClick={onDone}>
          Cancel
        </button>
      </p>
    </form>
  );
}

interface SummaryProps {
  readonly summary: AnswerSummary;
  readonly message: ChatMessage;
}

function show(message: ChatMessage | undefined): void {
  if (message) keep(showBranch(current.value, message.id));
}

/** Asks once more for an answer: as it was asked, in the daemon, in this tab, or of another model. */
function AnswerAgain({ message }: { readonly message: ChatMessage }): JSX.Element {
  const isRunning = running.value !== undefined;
  const again = (source: Source): void => {
    const asked = current.value.messages.find(({ id }) => id === message.parent);
    if (asked) void answer(asked, source);
  };
  return (
    <>
      <button class="again" type="button" disabled={isRunning} onClick={() => again({})}>
        Answer again
      </button>
      <select
        class="again-with"
        aria-label="Answer again with"
        disabled={isRunning}
        value=""
        onChange={({ currentTarget }) => {
          const [place, model] = currentTarget.value.split("/", 2);
          currentTarget.value = "";
          if (model !== undefined) again({ model: decodeURIComponent(model), inTab: place === "tab" });
        }}
      >
        <option value="">Again with …</option>
        <Places place="daemon" label="The daemon" models={answering.value.filter(isOfDaemon)} />
        {isSecureContext && <Places place="tab" label="This tab" models={answering.value} />}
      </select>
    </>
  );
}

function isOfDaemon({ state }: ListedModel): boolean {
  return state !== IN_BROWSER;
}

interface PlacesProps {
  readonly place: string;
  readonly label: string;
  readonly models: readonly ListedModel[];
}

function Places({ place, label, models }: PlacesProps): JSX.Element | null {
  if (models.length === 0) return null;
  return (
    <optgroup label={label}>
      {models.map(({ alias }) => (
        <option key={alias} value={`${place}/${encodeURIComponent(alias)}`}>
          {alias}
        </option>
      ))}
    </optgroup>
  );
}

/** Probabilities from which a token gets the next shade. */
const SHADES = [0.2, 0.5, 0.8, 0.95];

/** The tokens of an answer, shaded by how likely each was; the alternatives are in its title. */
function TokenView({ tokens }: { readonly tokens: readonly AnswerToken[] }): JSX.Element {
  return (
    <p class="token-list">
      {tokens.map((token, index) => (
        <span key={index} class={`token shade-${shadeOf(token)}`} title={describe(token)}>
          {token.token}
        </span>
      ))}
    </p>
  );
}

/** 0 for unlikely tokens, up to the number of shades. */
function shadeOf({ logprob }: AnswerToken): number {
  return SHADES.filter((least) => Math.exp(logprob) >= least).length;
}

function describe({ token, logprob, top }: AnswerToken): string {
  const alternatives = top.map((each) => `${JSON.stringify(each.token)} ${percent(each.logprob)}`);
  return [`${JSON.stringify(token)} ${percent(logprob)}`, ...alternatives].join("\n");
}

function percent(logprob: number): string {
  return `${(Math.exp(logprob) * 100).toFixed(1)} %`;
}
