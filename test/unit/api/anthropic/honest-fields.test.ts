import { toMessageRequest } from "../../../../src/api/anthropic/message-request.ts";
import { messageRequestSchema } from "../../../../src/api/anthropic/message-schema.ts";
import {
  ENGINE_SAMPLES,
  GRAMMAR_SAMPLES,
  SAMPLING_SAMPLES,
  SCHEMA_SAMPLES,
  THINKING_SAMPLES,
} from "../field-samples.ts";
import { describeHonestFields } from "../honest-fields.ts";

const TOOL = { name: "get_weather", input_schema: { type: "object" } };
const FORMAT = { type: "json_schema", schema: { type: "object" } };
const user = (content: string) => [{ role: "user", content }];

describeHonestFields([
  {
    name: "POST /v1/messages",
    schema: messageRequestSchema,
    base: { messages: user("hi"), max_tokens: 9, tools: [TOOL] },
    convert: (body) => toMessageRequest(messageRequestSchema.parse(body)),
    samples: {
      model: "other",
      max_tokens: 3,
      messages: user("ho"),
      system: "Be brief.",
      repetition_guard: true,
      ...SAMPLING_SAMPLES,
      ...ENGINE_SAMPLES,
      ...THINKING_SAMPLES,
      ...SCHEMA_SAMPLES,
      stop_sequences: ["END"],
      tools: [],
      tool_choice: { type: "any" },
      thinking: { type: "enabled", budget_tokens: 1024 },
      output_config: { format: FORMAT },
      output_format: FORMAT,
    },
    // A grammar cannot be combined with the tools of this request.
    testedOtherwise: ["stream", ...Object.keys(GRAMMAR_SAMPLES)],
  },
]);
