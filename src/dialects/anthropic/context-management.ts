import { z } from "zod";
import { ignored } from "../../http/input/known-fields.ts";

/** What a client wants to have left out of the conversation before the model reads it. */
export const contextManagementField = ignored(
  "the model reads the whole conversation, and the answer says that no edit was applied; an edit that would have left something out is told in the header x-daybreak-warning",
);

export const appliedEditsField = z
  .object({ applied_edits: z.array(z.unknown()) })
  .optional()
  .describe("If the request has context_management: no edit is applied.");

export const originalTokensField = z
  .object({ original_input_tokens: z.int() })
  .optional()
  .describe("If the request has context_management: the same number, as no edit is applied.");

const managementSchema = z.object({
  edits: z.array(z.object({ type: z.string(), keep: z.unknown().optional() })),
});
const allSchema = z.union([z.literal("all"), z.object({ type: z.literal("all") })]);

/** Says in a message, or the end of a stream, which edits were applied. */
export function appliedEdits(asked: unknown): { context_management?: { applied_edits: [] } } {
  return asked == null ? {} : { context_management: { applied_edits: [] } };
}

/** A type is as long as a client makes it. */
const MAX_SHOWN_TYPE = 60;

/** What is told of an edit that is not made. To keep all thinking, as Claude Code asks, leaves nothing out: what the model sees of it is up to its chat template. */
export function unheardEdits(asked: unknown): string[] {
  const edits = managementSchema.safeParse(asked).data?.edits ?? [];
  const missing = edits.find(
    ({ type, keep }) => !type.startsWith("clear_thinking_") || !allSchema.safeParse(keep).success,
  );
  if (!missing) return [];
  return [
    `context_management is not followed: ${missing.type.slice(0, MAX_SHOWN_TYPE)} leaves nothing out, so leave it out of the messages`,
  ];
}
