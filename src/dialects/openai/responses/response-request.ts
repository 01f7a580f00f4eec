import type { OutputFormat } from "../../../engine/protocol/generation.ts";
import { ServiceError } from "../../../errors/service-error.ts";
import { DEFAULT_SAMPLING } from "../../../inference/default-sampling.ts";
import type { InferenceRequest } from "../../../inference/inference.ts";
import { checkFormatWithTools, toConstraint } from "../../constraint-fields.ts";
import { toEngineFields } from "../../engine-fields.ts";
import { toSampling } from "../../sampling-fields.ts";
import { toReasoningBudget, toThinking } from "../../thinking-fields.ts";
import type { InputItem } from "./input-items.ts";
import { toMessages } from "./input-messages.ts";
import type { ResponseRequest } from "./response-schema.ts";
import { clientTools, leftOutWarnings, toFunctions } from "./response-tools.ts";
import { unheardVerbosity } from "../verbosity.ts";

const LOGPROBS = "message.output_text.logprobs";

/** A whole conversation, with item references resolved. */
export interface Conversation {
  readonly items: readonly InputItem[];
  /** How many of the items come from earlier responses. */
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
    throw new ServiceError("invalid_parameter", "input: must not be empty.", { param: "input" });
  }
  const warnings = [...leftOutWarnings(body.tools), ...unheardVerbosity(body.text?.verbosity)];
  const places = new Map((body.tools ?? []).map((tool, at) => [tool, `tools.${at}.parameters`]));
  const tools = toFunctions(clientTools(body.tools), body.tool_choice ?? "auto", {
    paramOf: (tool) => places.get(tool),
    warn: (warning) => warnings.push(warning),
  });
  const format = toConstraint(body, { param: "text.format", format: toFormat(body.text?.format) });
  checkFormatWithTools(format, tools.tools.length > 0 && tools.toolChoice !== "none");
  return {
    endpoint: "chat",
    model: body.model ?? undefined,
    isWhole: !body.stream,
    input: {
      kind: "chat",
      messages,
      // Input items are complete: what follows is an item of its own.
      continueLast: false,
      ...tools,
      parallelToolCalls: body.parallel_tool_calls ?? true,
      ...toThinking(body.reasoning?.effort),
    },
    maxTokens: body.max_output_tokens ?? undefined,
    sampling: toSampling(body),
    format,
    ...toEngineFields(body),
    ...toReasoningBudget(body),
    logprobs: body.include?.includes(LOGPROBS) ? (body.top_logprobs ?? 0) : (body.top_logprobs ?? undefined),
    repetitionGuard: body.repetition_guard ?? undefined,
    defaults: { sampling: DEFAULT_SAMPLING },
    ...(warnings.length > 0 && { warnings }),
  };
}

function toFormat(format: NonNullable<ResponseRequest["text"]>["format"]): OutputFormat {
  if (!format || format.type === "text") return { type: "text" };
  if (format.type === "json_object") return { type: "json" };
  const { schema, strict } = format;
  return { type: "json_schema", schema, ...(strict != null && { strict }), param: "text.format.schema" };
}
