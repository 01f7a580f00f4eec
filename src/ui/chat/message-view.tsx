import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { copyText } from "../copy-text.ts";
import { Markdown } from "../markdown/markdown.tsx";
import { activity, models } from "../page-state.ts";
import { AnswerAgain } from "./answer-again.tsx";
import { ask, continueAnswer } from "./answering.ts";
import { current, keep, running } from "./chat-state.ts";
import { type AnswerSummary, type ChatMessage, showBranch, siblings } from "./conversation.ts";
import { TokenView } from "./token-view.tsx";
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
  const context = models.value.find(({ alias }) => alias === message.model)?.context_size ?? 0;
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
