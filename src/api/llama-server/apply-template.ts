import { z } from "zod";
import type { ChatMessage } from "../../engine/protocol/generation.ts";
import { list } from "../../http/input/bounded-lists.ts";
import { refused, modelField, optional } from "../../http/input/common-fields.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { collectAnswer } from "../../inference/collect-answer.ts";
import type { Inference, InferenceRequest } from "../../inference/inference.ts";
import type { Services } from "../services.ts";
import { chatInput, chatMessage, textParts, toolDefinition } from "../chat-input.ts";
import { functionToolSchema, templateThinkingFields, thinkingFields } from "../wire/generation-fields.ts";
import { thinkingFromTemplateFields, toReasoningBudget } from "../request-settings.ts";

const content = optional(
  z.union([z.string(), list(z.object({ type: z.literal("text"), text: z.string() }))]),
  "Text, or parts of text.",
);

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
    messages: list(messageSchema, { min: 1 }).describe(
      "Messages as in POST /v1/chat/completions, without media.",
    ),
    tools: optional(list(functionToolSchema), "Functions to pass to the template."),
    tool_choice: z.unknown().optional().describe('"none": the functions are not passed to the template.'),
    chat_template: refused("a template belongs to the model; create one with TEMPLATE in its Modelfile"),
    add_generation_prompt: refused("the prompt always ends with the start of an answer", true),
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
    summary: "Apply the chat template to a conversation",
    description:
      "Takes as long as the prefill of the prompt, which stays in the KV cache for the next request.",
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
      const prompt = await withoutLeadingSpecial(inference, model, details?.prompt ?? "", signal);
      return context.json({ prompt });
    },
  });
}

function toRequest(body: Body): InferenceRequest {
  return {
    endpoint: "chat",
    model: body.model ?? undefined,
    input: chatInput(body.messages.map(toMessage), {
      tools: (body.tool_choice === "none" ? [] : (body.tools ?? [])).map((tool) =>
        toolDefinition(tool.function),
      ),
      ...thinkingFromTemplateFields(body),
    }),
    // A budget above 0 enables thinking.
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
  const {
    content: text,
    reasoning_content: reasoning,
    tool_calls: toolCalls,
    tool_call_id: toolCallId,
  } = message;
  const joined = typeof text === "string" ? text : (text ?? []).map((part) => part.text).join("");
  const name = message.role === "tool" ? message.name : undefined;
  return chatMessage(
    { role: message.role, content: textParts(joined), reasoning, toolCalls, toolCallId, name },
    index,
  );
}

/** Removes the leading special token, such as BOS: the tokenizer adds it again when the client sends the prompt. */
async function withoutLeadingSpecial(
  inference: Inference,
  model: string,
  prompt: string,
  signal: AbortSignal,
): Promise<string> {
  const options = { addSpecial: true, parseSpecial: false };
  const specialTokens = await inference.tokenize({ model, text: "", options }, signal);
  const first = specialTokens.subarray(0, 1);
  const firstText = first.length === 0 ? "" : await inference.detokenize({ model, tokens: first }, signal);
  return firstText !== "" && prompt.startsWith(firstText) ? prompt.slice(firstText.length) : prompt;
}
