import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { Button, Form, bound } from "../controls.tsx";
import { showProblem } from "../page-state.ts";
import { findTool } from "../tools/tools.ts";
import { answerCall, runCall } from "./answering.ts";
import { current, running } from "./chat-state.ts";
import { branch, type ToolCall } from "./conversation.ts";

/** A tool call with its result, or with a form to run it or to enter a result. */
export function ToolCallView({ call }: { readonly call: ToolCall }): JSX.Element {
  const result = branch(current.value).find(({ callId }) => callId === call.id);
  return (
    <details class="tool-call" open={result === undefined}>
      <summary>
        {result ? "Called" : "Calls"} <code>{call.name}</code>
      </summary>
      <pre aria-label="Arguments">{formatJson(call.arguments)}</pre>
      {result ? <pre aria-label="Result">{formatJson(result.content)}</pre> : <ToolDecision call={call} />}
    </details>
  );
}

function ToolDecision({ call }: { readonly call: ToolCall }): JSX.Element | null {
  const text = useSignal("");
  const tool = findTool(call.name);
  if (running.value) return null;
  return (
    <Form class="decision" onSubmit={() => answerCall(call, text.value).catch(showProblem)}>
      {tool?.run && (
        <p>
          <Button class="run" onClick={() => void runCall(call).catch(showProblem)}>
            Run it
          </Button>{" "}
          or answer for it:
        </p>
      )}
      <textarea rows={2} aria-label={`Result of ${call.name}`} {...bound(text)} />
      <button class="give-result" type="submit">
        Give this result
      </button>
    </Form>
  );
}

/** Indents JSON. Returns other text unchanged. */
function formatJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}
