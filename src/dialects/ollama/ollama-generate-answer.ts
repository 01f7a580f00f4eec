import { z } from "zod";
import type { Answer } from "../../inference/collect-answer.ts";
import type { InferenceEvent } from "../../inference/inference.ts";
import { line } from "./ollama-error.ts";
import {
  labelFields,
  labeled,
  logprobFields,
  logprobsField,
  residencyReasonField,
  summary,
  summaryFields,
  type Label,
  type ResidencyReason,
} from "./ollama-answer-fields.ts";

const common = {
  ...labelFields,
  response: z.string().describe("The text, or a piece of it."),
  thinking: z.string().optional().describe("What the model thought, or a piece of it."),
  logprobs: logprobsField,
};

export const generateAnswerSchema = z
  .object({ ...common, done: z.literal(true), ...summaryFields })
  .meta({ id: "OllamaGenerateAnswer" });
/** The answer when there is no prompt. */
const generateLoadSchema = z.object({
  ...labelFields,
  response: z.literal(""),
  done: z.literal(true),
  done_reason: residencyReasonField,
});
export const generateLineSchema = z.union([
  z.object({ ...common, done: z.literal(false) }),
  generateAnswerSchema,
]);

export function toGenerateAnswer(answer: Answer, label: Label): z.output<typeof generateAnswerSchema> {
  return {
    ...labeled(label),
    response: answer.text,
    ...(answer.reasoning !== "" && { thinking: answer.reasoning }),
    ...logprobFields(answer.logprobs),
    done: true,
    ...summary(answer, label.loadMs),
  };
}

export function toGenerateLoad(
  reason: ResidencyReason,
  label: Pick<Label, "model" | "now">,
): z.output<typeof generateLoadSchema> {
  return { ...labeled(label), response: "", done: true, done_reason: reason };
}

/** A line for each piece, and a last one with an empty response and the summary. */
export async function* toGenerateLines(
  events: AsyncIterable<InferenceEvent>,
  label: Label,
): AsyncGenerator<string, void, undefined> {
  for await (const event of events) {
    switch (event.type) {
      case "text-delta":
        yield line({
          ...labeled(label),
          response: event.text,
          ...logprobFields(event.logprobs),
          done: false,
        });
        break;
      case "reasoning-delta":
        yield line({ ...labeled(label), response: "", thinking: event.text, done: false });
        break;
      case "done":
        yield line({ ...labeled(label), response: "", done: true, ...summary(event, label.loadMs) });
        break;
      default:
        // Progress has no line here, and without tools there are no calls.
        break;
    }
  }
}
