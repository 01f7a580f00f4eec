import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { showProblem } from "../page-state.ts";
import { findTool } from "../tools/tools.ts";
import { answerCall, runCall } from "./answering.ts";
import { current, running } from "./chat-state.ts";
import { branch, type ToolCall } from "./conversation.ts";

/** A call of a tool, with its result or with what a person has to decide. */
export function ToolCallView({ call }: { readonly call: ToolCall }): JSX.Element {
  const result = branch(current.value).find(({ callId }) => callId === call.id);
  return (
    <details class="tool-call" open={result === undefined}>
      <summary>
        {result ? "Called" : "Calls"} <code>{call.name}</code>
      </summary>
      <pre aria-label="Arguments">{pretty(call.arguments)}</pre>
      {result ? <pre aria-label="Result">{pretty(result.content)}</pre> : <Decision call={call} />}
    </details>
  );
}

function Decision({ call }: { readonly call: ToolCall }): JSX.Element | null {
  const text = useSignal("");
  const tool = findTool(call.name);
  if (running.value) return null;
  return (
    <form
      class="decision"
      onSubmit={(event) => {
        event.preventDefault();
        answerCall(call, text.value).catch(showProblem);
      }}
    >
      {tool?.run && (
        <p>
          <button class="run" type="button" onClick={() => void runCall(call).catch(showProblem)}>
            Run it
          </button>{" "}
          or answer for it:
        </p>
      )}
      <textarea
        rows={2}
        aria-label={`Result of ${call.name}`}
        value={text}
        onInput={({ currentTarget }) => (text.value = currentTarget.value)}
      />
      <button class="give-result" type="submit">
        Give this result
      </button>
    </form>
  );
}

/** JSON with line breaks; anything else as it is. */
function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}
