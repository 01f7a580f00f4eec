import type { z } from "zod";
import type { modelListEntrySchema } from "../../dialects/management/model-schemas.ts";

type Entry = z.infer<typeof modelListEntrySchema>;

const REASONS: Readonly<Record<NonNullable<Entry["context_source"]>, string>> = {
  request: "asked for",
  modelfile: "num_ctx",
  configuration: "models.context_size",
  default: "the default",
  trained: "all it was trained for",
  automatic: "chosen automatically",
  memory: "limited by memory",
};

/** "8192 tokens (limited by memory)" */
export function contextInWords(model: Pick<Entry, "context_size" | "context_source">): string {
  const reason = contextReason(model);
  return `${model.context_size} tokens${reason === "" ? "" : ` (${reason})`}`;
}

/** Why a context has its size, in a few words; empty when the daemon does not say it. */
function contextReason({ context_source: source }: Pick<Entry, "context_source">): string {
  return source === undefined ? "" : REASONS[source];
}
