import type { QuantizeStep } from "../../models/quantize/quantize-steps.ts";
import type { StatusLine } from "./ollama-pull.ts";

/** What Ollama sends for a layer that has no digest yet. */
const NO_DIGEST = "0000000000000000000";

/** Converts the steps of a quantization to this API's statuses. */
export async function* toQuantizeLines(
  steps: AsyncIterable<QuantizeStep>,
): AsyncGenerator<StatusLine, void, undefined> {
  yield { status: "parsing GGUF" };
  for await (const step of steps) {
    if (step.status === "quantizing") {
      yield {
        status: `quantizing ${step.from} model to ${step.to}`,
        digest: NO_DIGEST,
        total: step.totalBytes,
        completed: step.completedBytes,
      };
    } else {
      yield { status: "writing manifest" };
      yield { status: "success" };
    }
  }
}
