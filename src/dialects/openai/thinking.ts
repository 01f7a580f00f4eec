import { z } from "zod";

/** What clients may ask for; a template knows some of them. */
export const reasoningEffortSchema = z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]);

/** An effort lets a model think, "none" forbids it, and a template that knows the word gets it. */
export function toThinking(
  effort: z.output<typeof reasoningEffortSchema> | null | undefined,
  variables?: Readonly<Record<string, unknown>> | null,
): { thinking?: boolean; templateVariables?: Record<string, unknown> } {
  const enable = variables?.["enable_thinking"];
  const thinking = effort === "none" ? false : typeof enable === "boolean" ? enable : undefined;
  const merged = { ...variables, ...(effort != null && effort !== "none" && { reasoning_effort: effort }) };
  return {
    ...(thinking !== undefined && { thinking }),
    ...(Object.keys(merged).length > 0 && { templateVariables: merged }),
  };
}
