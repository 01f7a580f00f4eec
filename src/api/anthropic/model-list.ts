import { z } from "zod";
import type { Model } from "../../models/model.ts";
import { invalidField, pageLimit } from "../../http/input/common-fields.ts";

/** Page limit of Anthropic's API. */
export const MAX_PAGE = 1000;

const supportSchema = z.object({ supported: z.boolean() });
type Support = z.output<typeof supportSchema>;

const capabilitiesSchema = z.object({
  batch: supportSchema,
  citations: supportSchema,
  code_execution: supportSchema,
  context_management: z.object({
    supported: z.boolean(),
    clear_thinking_20251015: supportSchema,
    clear_tool_uses_20250919: supportSchema,
    compact_20260112: supportSchema,
  }),
  effort: z.object({
    supported: z.boolean(),
    low: supportSchema,
    medium: supportSchema,
    high: supportSchema,
    xhigh: supportSchema,
    max: supportSchema,
  }),
  image_input: supportSchema,
  pdf_input: supportSchema,
  server_tools: z.object({
    supported: z.boolean(),
    code_execution: supportSchema,
    web_search: supportSchema,
  }),
  structured_outputs: supportSchema,
  thinking: z.object({
    supported: z.boolean(),
    types: z.object({
      adaptive: supportSchema,
      between_tools: supportSchema,
      disabled: supportSchema,
      enabled: supportSchema,
    }),
  }),
});

export const anthropicModelSchema = z
  .object({
    type: z.literal("model"),
    id: z.string(),
    display_name: z.string().describe("Name in the GGUF file, otherwise the id."),
    created_at: z.string().describe("When its files last changed, RFC 3339."),
    max_input_tokens: z.int().describe("Context size, which prompt and answer share."),
    max_tokens: z.int().describe("Same as max_input_tokens."),
    lifecycle: z.literal("active"),
    deprecated_at: z.null(),
    retires_at: z.null(),
    line: z.null(),
    capabilities: capabilitiesSchema,
  })
  .meta({ id: "AnthropicModel" });
type AnthropicModel = z.output<typeof anthropicModelSchema>;

/** Schema of a page of a list, with its cursors. */
export function pageSchema<Item extends z.ZodType>(item: Item) {
  return z.object({
    data: z.array(item),
    has_more: z.boolean(),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
  });
}

export function toPage<Item extends { readonly id: string }>(data: Item[], hasMore: boolean) {
  return { data, has_more: hasMore, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null };
}

/** @throws ServiceError invalid_parameter for two cursors */
export function checkCursors(after: string | undefined, before: string | undefined): void {
  if (after === undefined || before === undefined) return;
  throw invalidField("before_id", "send either after_id or before_id.");
}

export const anthropicModelListSchema = pageSchema(anthropicModelSchema).meta({ id: "AnthropicModelList" });

/** Query of GET /v1/models for clients of the messages API. */
export const modelListQuerySchema = z.object({
  limit: pageLimit(
    MAX_PAGE,
    "Maximum number of models per page. Only for clients of the messages API, like the cursors.",
  ),
  after_id: z.string().optional().describe("Return the models after this one."),
  before_id: z.string().optional().describe("Return the models right before this one."),
});

/** Converts a model to this API's format. */
export function toModel({ alias, gguf, modifiedAt, contextSize, capabilities }: Model): AnthropicModel {
  return {
    type: "model",
    id: alias,
    display_name: gguf.name ?? alias,
    created_at: new Date(modifiedAt).toISOString(),
    max_input_tokens: contextSize,
    max_tokens: contextSize,
    lifecycle: "active",
    deprecated_at: null,
    retires_at: null,
    line: null,
    capabilities: toCapabilities(capabilities),
  };
}

function toCapabilities({ vision, thinking, json }: Model["capabilities"]): AnthropicModel["capabilities"] {
  const unsupported: Support = { supported: false };
  const supported: Support = { supported: true };
  const thinkingSupport: Support = { supported: thinking };
  return {
    batch: supported,
    citations: unsupported,
    code_execution: unsupported,
    context_management: {
      ...unsupported,
      clear_thinking_20251015: unsupported,
      clear_tool_uses_20250919: unsupported,
      compact_20260112: unsupported,
    },
    // Adaptive thinking and efforts are accepted for every model, but only affect models with thinking.
    effort: {
      ...thinkingSupport,
      low: thinkingSupport,
      medium: thinkingSupport,
      high: thinkingSupport,
      xhigh: thinkingSupport,
      max: thinkingSupport,
    },
    image_input: { supported: vision },
    pdf_input: unsupported,
    server_tools: { ...unsupported, code_execution: unsupported, web_search: unsupported },
    structured_outputs: { supported: json },
    thinking: {
      ...thinkingSupport,
      types: { adaptive: supported, between_tools: supported, disabled: supported, enabled: thinkingSupport },
    },
  };
}

/**
 * Returns one page of the models on disk, in the daemon's order.
 * @throws ServiceError invalid_parameter for an unknown cursor, or for two cursors
 */
export function toModelList(
  models: readonly Model[],
  { limit, after_id: after, before_id: before }: z.output<typeof modelListQuerySchema>,
): z.output<typeof anthropicModelListSchema> {
  checkCursors(after, before);
  const listed = models.filter(({ state }) => state !== "downloading");
  const position = (id: string, param: string): number => {
    const found = listed.findIndex(({ alias }) => alias === id);
    if (found >= 0) return found;
    throw invalidField(param, `no model "${id}" is on disk.`);
  };
  const end = before === undefined ? listed.length : position(before, "before_id");
  const begin =
    before === undefined
      ? after === undefined
        ? 0
        : position(after, "after_id") + 1
      : Math.max(0, end - limit);
  const data = listed.slice(begin, Math.min(end, begin + limit)).map(toModel);
  return toPage(data, before === undefined ? begin + limit < end : begin > 0);
}
