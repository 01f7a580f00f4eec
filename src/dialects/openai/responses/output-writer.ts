import type { InferenceEvent } from "../../../inference/inference.ts";
import { toCallId, type TokenLogprobs, toTokenLogprobs } from "../openai-answer-fields.ts";
import { toBuiltInCall } from "./built-in-calls.ts";
import type { BuiltInTool, ClientTool } from "./response-tools.ts";
import { newId, type ItemStatus, type OutputItem } from "./response-object.ts";

/** An event of a streamed response, without its sequence number. */
export interface OutputEvent {
  readonly type: `response.${string}`;
  readonly [field: string]: unknown;
}

interface OpenItem {
  /** As it was added, without content. */
  readonly item: OutputItem;
  text: string;
  readonly logprobs: TokenLogprobs;
}

/** Writes the output items of a response in order; at most one is open. */
export class OutputWriter {
  readonly #done: OutputItem[] = [];
  #open: OpenItem | undefined;
  /** A call whose item can only be shown as a whole. */
  #builtIn: { readonly tool: BuiltInTool; readonly callId: string; text: string } | undefined;
  readonly #kinds: ReadonlyMap<string, ClientTool["type"]>;

  /** @param kinds what kind of tool each name means; absent names are functions */
  constructor(kinds: ReadonlyMap<string, ClientTool["type"]> = new Map()) {
    this.#kinds = kinds;
  }

  /** The complete items. */
  get items(): readonly OutputItem[] {
    return this.#done;
  }

  /** Yields the events for a piece of the answer. */
  *add(event: Exclude<InferenceEvent, { type: "done" }>): Generator<OutputEvent> {
    switch (event.type) {
      case "start":
      case "prompt-progress":
        return;
      case "reasoning-delta":
        if (event.text !== "") yield* this.#write("reasoning", event.text, []);
        return;
      case "text-delta": {
        const logprobs = toTokenLogprobs(event.logprobs ?? []);
        if (event.text !== "" || logprobs.length > 0) yield* this.#write("message", event.text, logprobs);
        return;
      }
      case "tool-call-start":
        yield* this.#beginCall(event.name, toCallId(event.id));
        return;
      case "tool-call-delta":
        if (this.#builtIn) this.#builtIn.text += event.arguments;
        else if (this.#open) yield this.#delta(this.#open, event.arguments, []);
    }
  }

  /** Closes the last item. A completed answer without text or calls gets an empty message. */
  *finish(status: Exclude<ItemStatus, "in_progress">): Generator<OutputEvent> {
    yield* this.#closeBuiltIn();
    const last = this.#open?.item ?? this.#done.at(-1);
    if (status === "completed" && (last === undefined || last.type === "reasoning")) {
      yield* this.#begin(emptyItem("message"));
    }
    yield* this.#close(status);
  }

  *#write(type: "message" | "reasoning", text: string, logprobs: TokenLogprobs): Generator<OutputEvent> {
    if (this.#open?.item.type !== type) yield* this.#begin(emptyItem(type));
    if (this.#open) yield this.#delta(this.#open, text, logprobs);
  }

  *#beginCall(name: string, callId: string): Generator<OutputEvent> {
    const kind = this.#kinds.get(name) ?? "function";
    const call = { status: "in_progress", call_id: callId, name } as const;
    if (kind === "function") {
      yield* this.#begin({ id: newId("fc"), ...call, arguments: "", type: "function_call" });
    } else if (kind === "custom") {
      yield* this.#begin({ id: newId("ctc"), ...call, input: "", type: "custom_tool_call" });
    } else {
      yield* this.#close("completed");
      this.#builtIn = { tool: kind, callId, text: "" };
    }
  }

  *#begin(item: OutputItem): Generator<OutputEvent> {
    yield* this.#close("completed");
    this.#open = { item, text: "", logprobs: [] };
    yield { type: "response.output_item.added", output_index: this.#done.length, item };
    const place = this.#place(item);
    if (item.type === "message") {
      yield { type: "response.content_part.added", ...place, content_index: 0, part: textPart("", []) };
    } else if (item.type === "reasoning") {
      yield { type: "response.reasoning_summary_part.added", ...place, summary_index: 0, part: summary("") };
    }
  }

  #delta(open: OpenItem, delta: string, logprobs: TokenLogprobs): OutputEvent {
    open.text += delta;
    open.logprobs.push(...logprobs);
    const place = this.#place(open.item);
    if (open.item.type === "message") {
      return { type: "response.output_text.delta", ...place, content_index: 0, delta, logprobs };
    }
    if (open.item.type === "reasoning") {
      return { type: "response.reasoning_summary_text.delta", ...place, summary_index: 0, delta };
    }
    return open.item.type === "custom_tool_call"
      ? { type: "response.custom_tool_call_input.delta", ...place, delta }
      : { type: "response.function_call_arguments.delta", ...place, delta };
  }

  *#close(status: Exclude<ItemStatus, "in_progress">): Generator<OutputEvent> {
    yield* this.#closeBuiltIn();
    if (!this.#open) return;
    const { item, text, logprobs } = this.#open;
    const place = this.#place(item);
    if (item.type === "message") {
      const part = textPart(text, logprobs);
      yield { type: "response.output_text.done", ...place, content_index: 0, text, logprobs };
      yield { type: "response.content_part.done", ...place, content_index: 0, part };
      yield* this.#complete({ ...item, status, content: [part] });
    } else if (item.type === "reasoning") {
      const part = summary(text);
      yield { type: "response.reasoning_summary_text.done", ...place, summary_index: 0, text };
      yield { type: "response.reasoning_summary_part.done", ...place, summary_index: 0, part };
      yield* this.#complete({ ...item, status, summary: [part] });
    } else if (item.type === "custom_tool_call") {
      yield { type: "response.custom_tool_call_input.done", ...place, input: text };
      yield* this.#complete({ ...item, status, input: text });
    } else if (item.type === "function_call") {
      const { name } = item;
      yield { type: "response.function_call_arguments.done", ...place, name, arguments: text };
      yield* this.#complete({ ...item, status, arguments: text });
    }
  }

  /** A call that is cut off is left out: its item has no form for that. */
  *#closeBuiltIn(): Generator<OutputEvent> {
    if (!this.#builtIn) return;
    const { tool, callId, text } = this.#builtIn;
    this.#builtIn = undefined;
    const item = toBuiltInCall(tool, { callId, arguments: text }, newId);
    if (!item) return;
    yield {
      type: "response.output_item.added",
      output_index: this.#done.length,
      item: { ...item, status: "in_progress" },
    };
    yield* this.#complete(item);
  }

  *#complete(item: OutputItem): Generator<OutputEvent> {
    const outputIndex = this.#done.length;
    this.#open = undefined;
    this.#done.push(item);
    yield { type: "response.output_item.done", output_index: outputIndex, item };
  }

  #place({ id }: OutputItem): { item_id: string; output_index: number } {
    return { item_id: id, output_index: this.#done.length };
  }
}

function emptyItem(type: "message" | "reasoning"): OutputItem {
  return type === "message"
    ? { id: newId("msg"), status: "in_progress", type, role: "assistant", content: [] }
    : { id: newId("rs"), status: "in_progress", type, summary: [] };
}

function textPart(
  text: string,
  logprobs: TokenLogprobs,
): Extract<OutputItem, { type: "message" }>["content"][number] {
  return { type: "output_text", text, annotations: [], logprobs };
}

function summary(text: string): Extract<OutputItem, { type: "reasoning" }>["summary"][number] {
  return { type: "summary_text", text };
}
