import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { AnswerToken } from "../../api/wire/native.ts";
import { Button, Form, bound } from "../controls.tsx";
import type { ListedModel } from "../daemon-api.ts";
import { Markdown } from "../markdown/markdown.tsx";
import { formatProbability } from "../../json/quantities.ts";
import { shadeClass } from "../browser.ts";
import { activity, copyText, models as allModels } from "../page-state.ts";
import { IN_BROWSER } from "../stored-models.ts";
import { answer, sendQuestion, continueAnswer, type AnswerSource } from "./answering.ts";
import { chatModels, current, saveAndShow, running } from "./chat-state.ts";
import { type ChatMessage, showBranch, siblings } from "./conversation.ts";
import { ToolCallView } from "./tool-call-view.tsx";

/** A question or an answer, with its buttons. */
export function MessageView({ message }: { readonly message: ChatMessage }): JSX.Element {
  const isEditing = useSignal(false);
  const showsTokens = useSignal(false);
  const isSideBySide = useSignal(false);
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
      {isEditing.value ? (
        <Editor message={message} onDone={() => (isEditing.value = false)} />
      ) : !isAnswer ? (
        <p class="text">{message.content}</p>
      ) : isSideBySide.value ? (
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
      {!isSideBySide.value && <Summary message={message} />}
      <p class="actions">
        <Versions message={message} />
        <Button onClick={() => copyText(message.content)}>Copy</Button>
        {isAnswer ? (
          <>
            <AnswerAgain message={message} />
            <Button
              class="continue"
              title="Lets the model go on where this answer ends"
              disabled={isRunning || message.content === ""}
              onClick={() => void continueAnswer(message)}
            >
              Continue
            </Button>
            {message.tokens && (
              <Button
                class="tokens"
                aria-pressed={showsTokens}
                onClick={() => (showsTokens.value = !showsTokens.value)}
              >
                Tokens
              </Button>
            )}
            {siblings(current.value, message).length > 1 && (
              <Button
                class="beside"
                aria-pressed={isSideBySide}
                onClick={() => (isSideBySide.value = !isSideBySide.value)}
              >
                Side by side
              </Button>
            )}
          </>
        ) : (
          <Button class="edit" disabled={isRunning} onClick={() => (isEditing.value = true)}>
            Edit
          </Button>
        )}
      </p>
    </article>
  );
}

/** Names the model of an answer, and the tab if it ran there. */
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
          <Summary message={each} />
          {each.id === message.id ? (
            <small>The conversation goes on from this one.</small>
          ) : (
            <Button onClick={() => showVersion(each)}>Go on from this one</Button>
          )}
        </section>
      ))}
    </div>
  );
}

function Summary({ message }: { readonly message: ChatMessage }): JSX.Element | null {
  const { summary } = message;
  if (!summary) return null;
  const { promptTokens, cachedTokens = 0, completionTokens, firstMs, tokensPerSecond, doneReason } = summary;
  const context = allModels.value.find(({ alias }) => alias === message.model)?.context_size ?? 0;
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
      <Button title="Version before" disabled={at === 0} onClick={() => showVersion(all[at - 1])}>
        ‹
      </Button>
      {` ${at + 1} of ${all.length} `}
      <Button title="Next version" disabled={at === all.length - 1} onClick={() => showVersion(all[at + 1])}>
        ›
      </Button>
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
    <Form
      class="editor"
      onSubmit={() => {
        onDone();
        return sendQuestion(text.value, { images, files }, message.parent);
      }}
    >
      <textarea ref={field} rows={3} aria-label="Changed message" {...bound(text)} />
      <p class="buttons">
        <button class="main" type="submit">
          Send as a new branch
        </button>
        <Button onClick={onDone}>Cancel</Button>
      </p>
    </Form>
  );
}

function showVersion(message: ChatMessage | undefined): void {
  if (message) saveAndShow(showBranch(current.value, message.id));
}

/** Buttons that generate another answer, also with another model or in this tab. */
function AnswerAgain({ message }: { readonly message: ChatMessage }): JSX.Element {
  const isRunning = running.value !== undefined;
  const again = (source: AnswerSource): void => {
    const question = current.value.messages.find(({ id }) => id === message.parent);
    if (question) void answer(question, source);
  };
  return (
    <>
      <Button class="again" disabled={isRunning} onClick={() => again({})}>
        Answer again
      </Button>
      <select
        class="again-with"
        aria-label="Answer again with"
        disabled={isRunning}
        value=""
        onChange={({ currentTarget }) => {
          const [source, model] = currentTarget.value.split("/", 2);
          currentTarget.value = "";
          if (model !== undefined) again({ model: decodeURIComponent(model), inTab: source === "tab" });
        }}
      >
        <option value="">Again with …</option>
        <ModelOptions source="daemon" label="The daemon" models={chatModels.value.filter(isInDaemon)} />
        {isSecureContext && <ModelOptions source="tab" label="This tab" models={chatModels.value} />}
      </select>
    </>
  );
}

function isInDaemon({ state }: ListedModel): boolean {
  return state !== IN_BROWSER;
}

interface ModelOptionsProps {
  readonly source: string;
  readonly label: string;
  readonly models: readonly ListedModel[];
}

function ModelOptions({ source, label, models }: ModelOptionsProps): JSX.Element | null {
  if (models.length === 0) return null;
  return (
    <optgroup label={label}>
      {models.map(({ alias }) => (
        <option key={alias} value={`${source}/${encodeURIComponent(alias)}`}>
          {alias}
        </option>
      ))}
    </optgroup>
  );
}

/** The tokens of an answer, shaded by probability. The tooltip of a token lists its alternatives. */
function TokenView({ tokens }: { readonly tokens: readonly AnswerToken[] }): JSX.Element {
  return (
    <p class="token-list">
      {tokens.map((token, index) => (
        <span key={index} class={`token ${shadeClass(token.logprob)}`} title={describeToken(token)}>
          {token.token}
        </span>
      ))}
    </p>
  );
}

function describeToken({ token, logprob, top }: AnswerToken): string {
  const alternatives = top.map((each) => `${JSON.stringify(each.token)} ${formatProbability(each.logprob)}`);
  return [`${JSON.stringify(token)} ${formatProbability(logprob)}`, ...alternatives].join("\n");
}
