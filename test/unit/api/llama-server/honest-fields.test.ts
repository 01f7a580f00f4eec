import {
  completionRequestSchema,
  infillRequestSchema,
  promptsOf,
  toRequests,
} from "../../../../src/api/llama-server/completion-request.ts";
import { ENGINE_SAMPLES, GRAMMAR_SAMPLES, SAMPLING_SAMPLES, SCHEMA_SAMPLES } from "../field-samples.ts";
import { describeHonestFields } from "../honest-fields.ts";

const common = {
  ...SAMPLING_SAMPLES,
  ...ENGINE_SAMPLES,
  ...SCHEMA_SAMPLES,
  ...GRAMMAR_SAMPLES,
  model: "other",
  n_predict: 3,
  max_tokens: 3,
  max_completion_tokens: 3,
  n_cmpl: 2,
  n: 2,
  stop: "END",
  repetition_guard: true,
  timings_per_token: true,
  n_probs: 2,
  logprobs: 2,
  return_tokens: true,
};
/** Fields that affect the answer; see completion.test.ts. */
const testedOtherwise = ["stream", "return_progress", "response_fields"];

describeHonestFields([
  {
    name: "POST /completion",
    schema: completionRequestSchema,
    base: { prompt: "hi" },
    convert: (body) => {
      const parsed = completionRequestSchema.parse(body);
      return toRequests(parsed, [{ kind: "prompt", prompt: JSON.stringify(promptsOf(parsed)) }]);
    },
    samples: { ...common, prompt: "ho" },
    testedOtherwise,
  },
  {
    name: "POST /infill",
    schema: infillRequestSchema,
    base: { input_prefix: "a", input_suffix: "b" },
    convert: (body) => {
      const parsed = infillRequestSchema.parse(body);
      const { input_prefix: prefix, input_suffix: suffix, input_extra: extra, prompt } = parsed;
      return toRequests(parsed, [
        { kind: "prompt", prompt: JSON.stringify([prefix, suffix, extra, prompt]) },
      ]);
    },
    samples: { ...common, input_prefix: "c", input_suffix: "d", input_extra: [{ text: "e" }], prompt: "f" },
    testedOtherwise,
  },
]);
