import type { ServiceError } from "../../../errors/service-error.ts";
import { limitFields } from "../../../inference/answer-limit.ts";
import type { InferenceEvent } from "../../../inference/inference.ts";
import { decodeCustomCalls } from "../custom-tools/decode-custom-calls.ts";
import { OutputWriter, type OutputEvent } from "./output-writer.ts";
import { toUsage, type ResponseObject } from "./response-object.ts";
import { toolKinds } from "./response-tools.ts";

/** An event of a streamed response. */
export interface ResponseEvent extends OutputEvent {
  /** Counts from 0. */
  readonly sequence_number: number;
}

/** Builds the events of one response and the response itself. The last event contains the complete response. */
export class ResponseWriter {
  readonly #output: OutputWriter;
  readonly #onComplete: (response: ResponseObject) => void | Promise<void>;
  readonly #now: () => number;
  #response: ResponseObject;
  #events = 0;

  /**
   * @param response as it starts
   * @param onComplete gets the response when it is complete, before the client does, and is waited for; not called when it fails
   */
  constructor(
    response: ResponseObject,
    onComplete: (response: ResponseObject) => void | Promise<void>,
    now: () => number = Date.now,
  ) {
    this.#response = response;
    this.#output = new OutputWriter(toolKinds(response.tools));
    this.#onComplete = onComplete;
    this.#now = now;
  }

  /** The complete response; throws what the source throws. */
  async collect(source: AsyncIterable<InferenceEvent>): Promise<ResponseObject> {
    const events = this.events(source);
    let step = await events.next();
    while (!step.done) step = await events.next();
    return this.#response;
  }

  /** All events of a response that does not fail; throws what the source throws. */
  async *events(source: AsyncIterable<InferenceEvent>): AsyncGenerator<ResponseEvent, void, undefined> {
    const custom = this.#response.tools.flatMap((tool) => (tool.type === "custom" ? tool.name : []));
    const decoded = custom.length > 0 ? decodeCustomCalls(source, new Set(custom)) : source;
    yield this.#lifecycle("response.created");
    yield this.#lifecycle("response.in_progress");
    for await (const event of decoded) {
      if (event.type !== "done") {
        for (const shown of this.#output.add(event)) yield this.#number(shown);
        continue;
      }
      const status = event.reason === "length" ? "incomplete" : "completed";
      for (const shown of this.#output.finish(status)) yield this.#number(shown);
      this.#end({
        status,
        incomplete_details:
          status === "incomplete" ? { reason: "max_output_tokens", ...limitFields(event) } : null,
        usage: toUsage(event.usage),
      });
      await this.#onComplete(this.#response);
      yield this.#lifecycle(`response.${status}`);
    }
  }

  /** The last event of a response that failed. */
  fail({ code, message }: ServiceError): ResponseEvent {
    this.#end({ status: "failed", error: { code, message } });
    return this.#lifecycle("response.failed");
  }

  #end(end: Partial<ResponseObject>): void {
    const completedAt = end.status === "completed" ? Math.floor(this.#now() / 1000) : null;
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
