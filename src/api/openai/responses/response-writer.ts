import type { ServiceError } from "../../../errors/service-error.ts";
import { type InferenceEvent } from "../../../inference/inference.ts";
import { decodeCustomCalls } from "../custom-tools.ts";
import { toCallId } from "../openai-fields.ts";
import { toBuiltInCall } from "./built-in-calls.ts";
import { type ItemStatus, type OutputItem, type ResponseObject, toUsage } from "./response-object.ts";
import { type BuiltInTool, type ClientTool, toolKinds } from "./response-tools.ts";
import { newId, toTokenLogprobs } from "../../answer-fields.ts";
import type { TokenLogprobs } from "../../wire/answer-fields.ts";

/** Event of a streamed response. */
export interface ResponseEvent extends OutputEvent {
  /** Sequence number, from 0. */
  readonly sequence_number: number;
}

/** Builds the events of one response and the response itself. The last event contains the complete response. */
export class ResponseWriter {
  readonly #output: OutputWriter;
  readonly #onComplete: (response: ResponseObject) => void | Promise<void>;
  #response: ResponseObject;
  #events = 0;

  /**
   * @param response response before its first output
   * @param onComplete receives the complete response, and is awaited before the client gets it; not called on failure
   */
  constructor(response: ResponseObject, onComplete: (response: ResponseObject) => void | Promise<void>) {
    this.#response = response;
    this.#output = new OutputWriter(toolKinds(response.tools));
    this.#onComplete = onComplete;
  }

  /** Returns the complete response. Rethrows errors of the source. */
  async collect(source: AsyncIterable<InferenceEvent>): Promise<ResponseObject> {
    const events = this.events(source);
    let step = await events.next();
    while (!step.done) step = await events.next();
    return this.#response;
  }

  /** Yields all events of a response. Rethrows errors of the source; {@link fail} then returns the last event. */
  async *events(source: AsyncIterable<InferenceEvent>): AsyncGenerator<ResponseEvent, void, undefined> {
    const custom = this.#response.tools.flatMap((tool) => (tool.type === "custom" ? tool.name : []));
    const decoded = custom.length > 0 ? decodeCustomCalls(source, new Set(custom)) : source;
    yield this.#lifecycle("response.created");
    yield this.#lifecycle("response.in_progress");
    for await (const event of decoded) {
      if (event.type !== "done") {
        for (const output of this.#output.add(event)) yield this.#number(output);
        continue;
      }
      const status = event.reason === "length" ? "incomplete" : "completed";
      for (const output of this.#output.finish(status)) yield this.#number(output);
      this.#end({
        status,
        incomplete_details:
          status === "incomplete" ? { reason: "max_output_tokens", limited_by: event.limitedBy } : null,
        usage: toUsage(event.usage),
      });
      await this.#onComplete(this.#response);
      yield this.#lifecycle(`response.${status}`);
    }
  }

  /** Returns the last event of a failed response. */
  fail({ code, message }: ServiceError): ResponseEvent {
    this.#end({ status: "failed", error: { code, message } });
    return this.#lifecycle("response.failed");
  }

  #end(end: Partial<ResponseObject>): void {
    const completedAt = end.status === "completed" ? Math.floor(Date.now() / 1000) : null;
    this.#response = {
      ...this.#response,
      ...end,
      output: [...this.#output.items],
      completed_at: completedAt,
    };
  }

  #lifecycle(type: OutputEvent["type"]): ResponseEvent {
    return this.#number({ type, response: this.#response });
  }

  #number({ type, ...fields }: OutputEvent): ResponseEvent {
    return { type, sequence_number: this.#events++, ...fields };
  }
}

/** Event of a streamed response, without its sequence number. */
interface OutputEvent {
  readonly type: `response.${string}`;
  readonly [field: string]: unknown;
}

interface OpenItem {
  /** Item without content. */
  readonly item: OutputItem;
  text: string;
  readonly logprobs: TokenLogprobs;
}

/** Writes the output items of a response in order; at most one is open. */
class OutputWriter {
  readonly #done: OutputItem[] = [];
  #open: OpenItem | undefined;
  /** Built-in tool call in progress, whose item is only sent when it is complete. */
  #builtIn: { readonly tool: BuiltInTool; readonly callId: string; text: string } | undefined;
  readonly #kinds: ReadonlyMap<string, ClientTool["type"]>;

  /** @param kinds type of each tool by name; absent names are functions */
  constructor(kinds: ReadonlyMap<string, ClientTool["type"]>) {
    this.#kinds = kinds;
  }

  /** Complete items. */
  get items(): readonly OutputItem[] {
    return this.#done;
  }

  /** Yields the events for a part of the answer. */
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
    const position = this.#position(item);
    if (item.type === "message") {
      yield { type: "response.content_part.added", ...position, content_index: 0, part: textPart("", []) };
    } else if (item.type === "reasoning") {
      yield {
        type: "response.reasoning_summary_part.added",
        ...position,
        summary_index: 0,
        part: summary(""),
      };
    }
  }

  #delta(open: OpenItem, delta: string, logprobs: TokenLogprobs): OutputEvent {
    open.text += delta;
    open.logprobs.push(...logprobs);
    const position = this.#position(open.item);
    if (open.item.type === "message") {
      return { type: "response.output_text.delta", ...position, content_index: 0, delta, logprobs };
    }
    if (open.item.type === "reasoning") {
      return { type: "response.reasoning_summary_text.delta", ...position, summary_index: 0, delta };
    }
    return open.item.type === "custom_tool_call"
      ? { type: "response.custom_tool_call_input.delta", ...position, delta }
      : { type: "response.function_call_arguments.delta", ...position, delta };
  }

  *#close(status: Exclude<ItemStatus, "in_progress">): Generator<OutputEvent> {
    yield* this.#closeBuiltIn();
    if (!this.#open) return;
    const { item, text, logprobs } = this.#open;
    const position = this.#position(item);
    if (item.type === "message") {
      const part = textPart(text, logprobs);
      yield { type: "response.output_text.done", ...position, content_index: 0, text, logprobs };
      yield { type: "response.content_part.done", ...position, content_index: 0, part };
      yield* this.#complete({ ...item, status, content: [part] });
    } else if (item.type === "reasoning") {
      const part = summary(text);
      yield { type: "response.reasoning_summary_text.done", ...position, summary_index: 0, text };
      yield { type: "response.reasoning_summary_part.done", ...position, summary_index: 0, part };
      yield* this.#complete({ ...item, status, summary: [part] });
    } else if (item.type === "custom_tool_call") {
      yield { type: "response.custom_tool_call_input.done", ...position, input: text };
      yield* this.#complete({ ...item, status, input: text });
    } else if (item.type === "function_call") {
      const { name } = item;
      yield { type: "response.function_call_arguments.done", ...position, name, arguments: text };
      yield* this.#complete({ ...item, status, arguments: text });
    }
  }

  /** Completes a built-in tool call. Drops a truncated one, because its item cannot represent that. */
  *#closeBuiltIn(): Generator<OutputEvent> {
    if (!this.#builtIn) return;
    const { tool, callId, text } = this.#builtIn;
    this.#builtIn = undefined;
    const item = toBuiltInCall(tool, { callId, arguments: text });
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

  #position({ id }: OutputItem): { item_id: string; output_index: number } {
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
