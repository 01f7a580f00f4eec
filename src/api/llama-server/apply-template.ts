import { z } from "zod";
import { type ChatMessage, jsonSchemaSchema } from "../../engine/protocol/generation.ts";
import { list } from "../../http/input/bounded-lists.ts";
import { refused } from "../../http/input/common-fields.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { collectAnswer } from "../../inference/collect-answer.ts";
import type { Inference, InferenceRequest } from "../../inference/inference.ts";
import type { Services } from "../services.ts";
import {
  templateThinkingFields,
  thinkingFields,
  toReasoningBudget,
  toTemplateThinking,
} from "../reasoning-fields.ts";
import { modelField } from "./completion-request.ts";

const content = z
  .union([z.string(), list(z.object({ type: z.literal("text"), text: z.string() }))])
  .nullish()
  .describe("Text, or parts of text.");

const messageSchema = z.object({
  role: z.enum(["system", "developer", "user", "assistant", "tool"]),
  content,
  reasoning_content: z.string().nullish(),
  tool_calls: list(
    z.object({ id: z.string().nullish(), function: z.object({ name: z.string(), arguments: z.string() }) }),
  ).nullish(),
  tool_call_id: z.string().nullish(),
  name: z.string().nullish(),
});
type Message = z.output<typeof messageSchema>;

const applyTemplateSchema = z
  .object({
    model: modelField,
    messages: list(messageSchema, { least: 1 }).describe("As in POST /v1/chat/completions, without media."),
    tools: list(
      z.object({
        type: z.literal("function").default("function"),
        function: z.object({
          name: z.string().min(1),
          description: z.string().nullish(),
          parameters: jsonSchemaSchema.nullish(),
        }),
      }),
    )
      .nullish()
      .describe("Functions for the template."),
    tool_choice: z.unknown().optional().describe('"none": the template does not get the functions.'),
    chat_template: refused("a template belongs to the model; create one with TEMPLATE in its Modelfile"),
    add_generation_prompt: refused("a prompt is always made for an answer", true),
    ...templateThinkingFields,
    ...thinkingFields,
  })
  .meta({ id: "ApplyTemplateRequest" });
type Body = z.output<typeof applyTemplateSchema>;

/** POST /apply-template. */
export function applyTemplateRoute({ inference }: Services): Route {
  return defineRoute({
    method: "POST",
    path: "/apply-template",
    tag: "llama-server",
    summary: "Show what a chat becomes for the model",
    description:
      "Takes as long as the model needs to read the prompt, which is then in its cache for the request that follows.",
    body: applyTemplateSchema,
    answers: [
      {
        description: "The prompt.",
        schema: z.object({ prompt: z.string() }).meta({ id: "AppliedTemplate" }),
      },
    ],
    async handle(context, { body }) {
      const { signal } = context.req.raw;
      const { model, events } = await inference.generate(toRequest(body), signal);
      const { details } = await collectAnswer(events);
      const prompt = await withoutAdded(inference, model, details?.prompt ?? "", signal);
      return context.json({ prompt });
    },
  });
}

function toRequest(body: Body): InferenceRequest {
  return {
    endpoint: "chat",
    model: body.model ?? undefined,
    input: {
      kind: "chat",
      messages: body.messages.map(toMessage),
      tools: (body.tool_choice === "none" ? [] : (body.tools ?? [])).map(
        ({ function: { name, description, parameters } }) => ({
          name,
          description: description ?? undefined,
          parameters: parameters ?? undefined,
        }),
      ),
      toolChoice: "auto",
      parallelToolCalls: true,
      ...toTemplateThinking(body),
    },
    // More than 0 enables thinking.
    ...toReasoningBudget(body),
    maxTokens: 1,
    sampling: {},
    format: { type: "text" },
    details: true,
    repetitionGuard: false,
    defaults: { sampling: {} },
  };
}

function toMessage(message: Message, index: number): ChatMessage {
  const text =
    typeof message.content === "string"
      ? message.content
      : (message.content ?? []).map((part) => part.text).join("");
  const parts: ChatMessage["content"] = text === "" ? [] : [{ type: "text", text }];
  const { role, tool_calls: calls, reasoning_content: reasoning, tool_call_id: id, name } = message;
  if (role === "assistant") {
    const toolCalls = calls?.map((call, at) => ({
      id: call.id ?? `call_${index}_${at}`,
      name: call.function.name,
      arguments: call.function.arguments,
    }));
    return { role, content: parts, reasoning: reasoning ?? undefined, toolCalls };
  }
  if (role === "tool") return { role, content: parts, toolCallId: id ?? undefined, name: name ?? undefined };
  return { role: role === "user" ? "user" : "system", content: parts };
}

/** A prompt without the tokens that the tokenizer puts in front of every text: it does so again when the prompt is sent. */
async function withoutAdded(
  inference: Pick<Inference, "tokenize" | "detokenize">,
  model: string,
  prompt: string,
  signal: AbortSignal,
): Promise<string> {
  const options = { addSpecial: true, parseSpecial: false };
  const added = await inference.tokenize({ model, text: "", options }, signal);
  const first = added.subarray(0, 1);
  const begin = first.length === 0 ? "" : await inference.detokenize({ model, tokens: first }, signal);
  return begin !== "" && prompt.startsWith(begin) ? prompt.slice(begin.length) : prompt;
}
