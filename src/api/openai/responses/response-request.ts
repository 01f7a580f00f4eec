import type { OutputFormat } from "../../../engine/protocol/generation.ts";
import { ServiceError } from "../../../errors/service-error.ts";
import type {
  Inference,
  InferenceRequest,
  InferenceStream,
  ToolGrammar,
} from "../../../inference/inference.ts";
import { ignoredVerbosity } from "../output-format.ts";
import { type InputItem, isMessage } from "./input-items.ts";
import { toMessages } from "./input-messages.ts";
import type { ResponseRequest } from "./response-schema.ts";
import type { StoredResponses } from "./response-store.ts";
import { clientTools, omittedToolWarnings, toFunctions } from "./response-tools.ts";
import { chatInput } from "../../chat-input.ts";
import { invalidField } from "../../../http/input/common-fields.ts";
import { commonSettings, thinkingFromEffort, toReasoningBudget } from "../../request-settings.ts";
import { checkFormatWithTools, toSingleFormat } from "../../structured-output.ts";

const LOGPROBS = "message.output_text.logprobs";

/** Complete conversation, with item references resolved. */
interface Conversation {
  readonly items: readonly InputItem[];
  /** Number of items from earlier responses, which come first. */
  readonly earlier: number;
}

export function toInferenceRequest(
  body: Partial<ResponseRequest>,
  { items, earlier }: Conversation,
): InferenceRequest {
  const messages = toMessages(items, earlier);
  const { instructions } = body;
  if (instructions) messages.unshift({ role: "system", content: [{ type: "text", text: instructions }] });
  if (messages.length === 0) {
    throw invalidField("input", "must not be empty.");
  }
  const warnings = [...omittedToolWarnings(body.tools), ...ignoredVerbosity(body.text?.verbosity)];
  const toolGrammars: ToolGrammar[] = [];
  const params = new Map((body.tools ?? []).map((tool, at) => [tool, `tools.${at}.parameters`]));
  const tools = toFunctions(clientTools(body.tools), body.tool_choice ?? "auto", {
    paramOf: (tool) => params.get(tool),
    grammars: toolGrammars,
  });
  const format = toSingleFormat(body, { param: "text.format", format: toFormat(body.text?.format) });
  checkFormatWithTools(format, tools.tools.length > 0 && tools.toolChoice !== "none");
  return {
    endpoint: "chat",
    ...commonSettings(body),
    isBuffered: !body.stream,
    input: chatInput(messages, {
      // Input items are complete; the answer is a new item.
      continueLast: false,
      ...tools,
      parallelToolCalls: body.parallel_tool_calls ?? true,
      ...thinkingFromEffort(body.reasoning?.effort),
    }),
    maxTokens: body.max_output_tokens ?? undefined,
    format,
    ...(toolGrammars.length > 0 && { toolGrammars }),
    ...toReasoningBudget(body),
    logprobs: body.include?.includes(LOGPROBS) ? (body.top_logprobs ?? 0) : (body.top_logprobs ?? undefined),
    ...(warnings.length > 0 && { warnings }),
  };
}

function toFormat(format: NonNullable<ResponseRequest["text"]>["format"]): OutputFormat {
  if (!format || format.type === "text") return { type: "text" };
  if (format.type === "json_object") return { type: "json" };
  const { schema, strict } = format;
  return { type: "json_schema", schema, ...(strict != null && { strict }), param: "text.format.schema" };
}

/**
 * Returns the conversation of a request: that of the previous response, then its own input.
 * @param viewer owner of the request
 * @throws ServiceError previous_response_not_found, invalid_parameter for an item that is not stored, or
 *   fleet_unreachable
 */
export async function resolveConversation(
  { input, previous_response_id: previous }: Partial<ResponseRequest>,
  store: StoredResponses,
  viewer: string | undefined,
): Promise<Conversation> {
  const stored = previous == null ? undefined : await store.get(previous, viewer);
  if (previous != null && !stored) {
    throw new ServiceError(
      "previous_response_not_found",
      `Response "${previous}" was not found; it may have been removed to free memory. Send the whole conversation as input.`,
      { param: "previous_response_id" },
    );
  }
  const items = [...(stored?.items ?? [])];
  const earlier = items.length;
  const added = typeof input === "string" ? [{ role: "user" as const, content: input }] : (input ?? []);
  const referenced = new Map<string, InputItem>();
  for (const [index, item] of added.entries()) {
    if (item.type !== "item_reference") {
      items.push(item);
      continue;
    }
    const found = referenced.get(item.id) ?? (await store.item(item.id, viewer));
    if (!found) {
      throw invalidField(
        `input.${index}.id`,
        `item "${item.id}" was not found; it may have been removed to free memory. Send the item itself.`,
      );
    }
    referenced.set(item.id, found);
    items.push(found);
  }
  return { items, earlier };
}

/**
 * Starts generating. With truncation "auto", retries a conversation that does not fit the context without its oldest
 * turns: drops one turn, then two more, then four more. Keeps instructions and the last turn.
 */
export async function generateWithTruncation(
  inference: Inference,
  body: ResponseRequest,
  conversation: Conversation,
  signal: AbortSignal,
): Promise<InferenceStream> {
  let remaining = conversation;
  for (let turns = 1; ; turns *= 2) {
    try {
      return await inference.generate(toInferenceRequest(body, remaining), signal);
    } catch (error) {
      const items = withoutOldestTurns(remaining.items, turns);
      if (body.truncation !== "auto" || !isTooLong(error) || items.length === remaining.items.length)
        throw error;
      remaining = { items, earlier: 0 };
    }
  }
}

function isTooLong(error: unknown): boolean {
  return error instanceof ServiceError && error.code === "context_length_exceeded";
}

/** Drops the oldest turns. A turn starts with a user message. Instructions belong to no turn, and are kept. */
function withoutOldestTurns(items: readonly InputItem[], count: number): readonly InputItem[] {
  const starts = [...items.keys()].filter((index) => isUser(items[index]));
  const firstIndex = starts[Math.min(count, starts.length - 1)] ?? 0;
  return items.filter((item, index) => index >= firstIndex || isInstruction(item));
}

function isUser(item: InputItem | undefined): boolean {
  return item !== undefined && isMessage(item) && item.role === "user";
}

function isInstruction(item: InputItem): boolean {
  return isMessage(item) && (item.role === "system" || item.role === "developer");
}
