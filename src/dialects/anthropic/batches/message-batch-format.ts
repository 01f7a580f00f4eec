import { z } from "zod";
import type { BatchFormat } from "../../../batches/batch-format.ts";
import type { AnsweredLine, BatchUsage } from "../../../batches/batch.ts";
import { anthropicErrorBody } from "../anthropic-error.ts";

/** Name of the format in the store. */
export const ANTHROPIC_BATCHES = "anthropic";
export const MESSAGES_PATH = "/v1/messages";

/** The API's own form. */
export const customIdSchema = z
  .string()
  .regex(/^[\w-]{1,64}$/, { error: "must have 1 to 64 letters, digits, hyphens and underscores" });

/** A line of the file that the requests are kept in; the route checks the parameters. */
const lineSchema = z.object({
  custom_id: customIdSchema,
  params: z.looseObject({}),
});

const tokens = z.number().default(0);
const usageSchema = z.object({
  usage: z.object({ input_tokens: tokens, cache_read_input_tokens: tokens, output_tokens: tokens }),
});

/** The requests of /v1/messages/batches. */
export const messageBatchFormat: BatchFormat = {
  endpoints: [MESSAGES_PATH],
  separatesErrors: false,
  read(value) {
    const { data } = lineSchema.safeParse(value);
    if (!data) return { code: "invalid_request", message: "This is not a request of a batch.", param: null };
    const { model, system, tools, messages } = data.params;
    const turns: readonly unknown[] = Array.isArray(messages) ? messages : [];
    const beginning = [system, tools, ...turns].flatMap((part) =>
      part == null ? [] : [JSON.stringify(part)],
    );
    return { customId: data.custom_id, model: typeof model === "string" ? model : "", beginning };
  },
  request(value) {
    const { params } = lineSchema.parse(value);
    return { path: MESSAGES_PATH, body: JSON.stringify(params) };
  },
  error: (error, requestId) => JSON.stringify(anthropicErrorBody(error, requestId)),
  usage(body): BatchUsage {
    const usage = usageSchema.safeParse(body).data?.usage;
    const cachedTokens = usage?.cache_read_input_tokens ?? 0;
    const inputTokens = (usage?.input_tokens ?? 0) + cachedTokens;
    return { inputTokens, cachedTokens, outputTokens: usage?.output_tokens ?? 0, reasoningTokens: 0 };
  },
  write: writeLine,
};

/** The answer's body stays as the route wrote it, byte for byte. */
function writeLine({ customId, outcome, answer }: AnsweredLine): string {
  return `{"custom_id":${JSON.stringify(customId)},"result":${resultOf(outcome, answer?.body)}}`;
}

function resultOf(outcome: AnsweredLine["outcome"], body: string | undefined): string {
  if (body === undefined) return outcome === "cancelled" ? '{"type":"canceled"}' : '{"type":"expired"}';
  return outcome === "succeeded"
    ? `{"type":"succeeded","message":${body}}`
    : `{"type":"errored","error":${body}}`;
}
