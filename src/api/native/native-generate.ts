import { z } from "zod";
import type { ChatMessage } from "../../engine/protocol/generation.ts";
import { ndjsonLine } from "../../http/errors.ts";
import { type Answer, joinToolCalls } from "../../inference/collect-answer.ts";
import { DEFAULT_SAMPLING } from "../../inference/default-sampling.ts";
import type { InferenceRequest, InferenceStream } from "../../inference/inference.ts";
import { chatInput, imageParts } from "../chat-input.ts";
import { modelField, optional } from "../../http/input/common-fields.ts";
import { thinkingFromLevel, toEngineFields, toReasoningBudget, toSampling } from "../request-settings.ts";
import { promptProgressSchema, returnProgressField } from "../wire/answer-fields.ts";
import { toPromptProgress } from "../answer-fields.ts";
import {
  DEFAULT_MAX_TOKENS,
  deltaStatisticsFields,
  generationFields,
  logprobFields,
  logprobsField,
  streamField,
  summaryFields,
  wireToolCallSchema,
} from "../wire/native.ts";
import {
  deltaStatistics,
  summary,
  toFormat,
  tokenFields,
  toLogprobs,
  toMaxTokens,
  toToolChoice,
  toTools,
  wireToolCall,
} from "./native-conversion.ts";

export const generateRequestSchema = z
  .object({
    model: modelField,
    prompt: z.string().describe("Input text."),
    system: optional(z.string(), "System prompt; empty for none. Default: the Modelfile's."),
    stream: streamField,
    ...generationFields,
    ...logprobFields,
    return_progress: returnProgressField,
  })
  .meta({ id: "GenerateRequest" });

const answerFields = {
  model: z.string().describe("The model that generated the answer."),
  thinking: z.string().optional().describe("The model's reasoning."),
  tool_calls: z.array(wireToolCallSchema).optional().describe("Calls of the request's tools."),
};

export const generateAnswerSchema = z
  .object({
    ...answerFields,
    response: z.string().describe("The generated text."),
    ...logprobsField,
    done: z.literal(true),
    ...summaryFields,
  })
  .meta({ id: "GenerateAnswer" });

export const generateLineSchema = z
  .union([
    z.object({
      ...answerFields,
      response: z.string().describe("Part of the text."),
      ...logprobsField,
      prompt_progress: promptProgressSchema.optional().describe("If the request has return_progress."),
      ...deltaStatisticsFields,
      done: z.literal(false),
    }),
    generateAnswerSchema,
  ])
  .meta({ id: "GenerateLine" });

type GenerateRequest = z.output<typeof generateRequestSchema>;

export function toGenerateRequest(body: GenerateRequest): InferenceRequest {
  return {
    endpoint: "generate",
    model: body.model ?? undefined,
    isBuffered: !body.stream,
    input: toInput(body),
    maxTokens: toMaxTokens(body),
    stop: body.stop ?? undefined,
    sampling: toSampling(body),
    format: toFormat(body),
    logprobs: toLogprobs(body),
    ...toEngineFields(body),
    timings: body.timings_per_token ?? false,
    ...toReasoningBudget(body),
    repetitionGuard: body.repetition_guard ?? undefined,
    defaults: { maxTokens: DEFAULT_MAX_TOKENS, sampling: DEFAULT_SAMPLING },
  };
}

/** Converts the input. Tools require a chat; without tools, models without a chat template can answer too. */
function toInput(body: GenerateRequest): InferenceRequest["input"] {
  const images = imageParts(body.images, "images");
  const tools = toTools(body.tools);
  const thinking = thinkingFromLevel(body.think);
  if (tools.length === 0) {
    return {
      kind: "instruct",
      prompt: body.prompt,
      system: body.system ?? undefined,
      images: images.map(({ data }) => data),
      ...thinking,
    };
  }
  // An empty system message overrides the Modelfile's.
  const system: ChatMessage[] =
    body.system == null ? [] : [{ role: "system", content: [{ type: "text", text: body.system }] }];
  const user: ChatMessage = { role: "user", content: [...images, { type: "text", text: body.prompt }] };
  return chatInput([...system, user], { tools, toolChoice: toToolChoice(body.tool_choice), ...thinking });
}

export function toGenerateAnswer(model: string, answer: Answer): z.output<typeof generateAnswerSchema> {
  return {
    model,
    response: answer.text,
    ...(answer.reasoning !== "" && { thinking: answer.reasoning }),
    ...(answer.toolCalls.length > 0 && { tool_calls: answer.toolCalls.map(wireToolCall) }),
    ...tokenFields(answer.logprobs),
    done: true,
    ...summary(answer),
  };
}

function generateLine(line: z.output<typeof generateLineSchema>): string {
  return ndjsonLine(line);
}

/**
 * Yields the lines of a streamed answer: one per chunk, then one without text that has the statistics.
 * @param returnProgress also yield a line for each prefill step
 */
export async function* toGenerateLines(
  { model, events }: InferenceStream,
  returnProgress = false,
): AsyncGenerator<string> {
  for await (const event of joinToolCalls(events)) {
    switch (event.type) {
      case "start":
        break;
      case "prompt-progress":
        if (returnProgress)
          yield generateLine({ model, response: "", prompt_progress: toPromptProgress(event), done: false });
        break;
      case "text-delta":
        yield generateLine({
          model,
          response: event.text,
          ...tokenFields(event.logprobs),
          ...deltaStatistics(event),
          done: false,
        });
        break;
      case "reasoning-delta":
        yield generateLine({
          model,
          response: "",
          thinking: event.text,
          ...deltaStatistics(event),
          done: false,
        });
        break;
      case "tool-call":
        yield generateLine({ model, response: "", tool_calls: [wireToolCall(event.call)], done: false });
        break;
      case "done":
        yield generateLine({ model, response: "", done: true, ...summary(event) });
    }
  }
}
