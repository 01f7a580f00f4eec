import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { models } from "../page-state.ts";
import { answer, ask, current, keep, running } from "./chat-state.ts";
import { type AnswerSummary, branch, type ChatMessage, showBranch, siblings } from "./conversation.ts";
import { copyText } from "../copy-text.ts";
import { renderMarkdown } from "./render-markdown.ts";

/** A question or an answer, with what can be done with it. */
export function MessageView({ message }: { readonly message: ChatMessage }): JSX.Element {
  const isEdited = useSignal(false);
  return (
    <article
      class={`message ${message.role}`}
      aria-label={message.role === "user" ? "You" : (message.model ?? "Answer")}
    >
      {message.thinking !== undefined && (
        <details class="thinking">
          <summary>Thinking</summary>
          {message.thinking}
        </details>
      )}
      {message.images?.map((url) => (
        <img key={url} src={url} alt="Sent with the message" />
      ))}
      {isEdited.value ? (
        <Editor message={message} onDone={() => (isEdited.value = false)} />
      ) : message.role === "user" ? (
        <p class="text">{message.content}</p>
      ) : (
        <Answer content={message.content} />
      )}
      {message.problem !== undefined && <p class="failed">{message.problem}</p>}
      {message.summary && <Summary summary={message.summary} model={message.model} />}
      <p class="actions">
        <Versions message={message} />
        <button type="button" onClick={() => copyText(message.content)}>
          Copy
        </button>
        {message.role === "user" ? (
          <button
            class="edit"
            type="button"
            disabled={running.value !== undefined}
            onClick={() => (isEdited.value = true)}
          >
            Edit
          </button>
        ) : (
          <button
            class="again"
            type="button"
            disabled={running.value !== undefined}
            onClick={() => repeat(message)}
          >
            Answer again
          </button>
        )}
      </p>
    </article>
  );
}

function Answer({ content }: { readonly content: string }): JSX.Element {
  const html = useMemo(() => renderMarkdown(content), [content]);
  const text = useRef<HTMLDivElement>(null);
  useEffect(() => {
    for (const block of text.current?.querySelectorAll("pre") ?? []) block.append(copyButton(block));
  }, [html]);
  // Sanitized, and no script of it could run by the page's policy.
  return <div ref={text} class="markdown" dangerouslySetInnerHTML={{ __html: html }} />;
}

function Summary({ summary, model }: SummaryProps): JSX.Element {
  const { promptTokens, completionTokens, firstMs, tokensPerSecond, doneReason } = summary;
  const context = models.value.find(({ alias }) => alias === model)?.context_size ?? 0;
  const used = promptTokens + completionTokens;
  const speed = tokensPerSecond === undefined ? "" : ` · ${tokensPerSecond.toFixed(1)} tokens/s`;
  return (
    <small class="summary">
      {completionTokens} tokens{speed} · first after {(firstMs / 1000).toFixed(2)} s
      {context > 0 && (
        <>
          {" · "}
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
  return (
    <form
      class="editor"
      onSubmit={(event) => {
        event.preventDefault();
        onDone();
        void ask(text.value, message.images ?? [], message.parent);
      }}
    >
      <textarea
        rows={3}
        aria-label="Changed message"
        value={text}
        onInput={({ currentTarget }) => (text.value = currentTarget.value)}
      />
      <button type="submit">Send as a new branch</button>
      <button type="button" onClick={onDone}>
        Cancel
      </button>
    </form>
  );
}

interface SummaryProps {
  readonly summary: AnswerSummary;
  /** That answered. */
  readonly model: string | undefined;
}

/** Copies a block of code as it is written. */
function copyButton(block: HTMLElement): HTMLButtonElement {
  const code = block.textContent ?? "";
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy code";
  button.addEventListener("click", () => copyText(code));
  return button;
}

function show(message: ChatMessage | undefined): void {
  if (message) keep(showBranch(current.value, message.id));
}

/** Asks once more for what a message answers. */
function repeat({ parent }: ChatMessage): void {
  const question = branch(current.value).find(({ id }) => id === parent);
  if (question) void answer(question);
}
