import { z } from "zod";
import { STATE_CHUNK_BYTES } from "../../engine/protocol/calls.ts";
import { adapterScalesSchema } from "../../engine/protocol/generation.ts";
import { ServiceError } from "../../errors/service-error.ts";

const hex = z.string().regex(/^[0-9a-f]{64}$/);

export const headerSchema = z.object({
  /** SHA-256 of the model's files, and of its adapters'. */
  model: hex,
  /** SHA-256 of the engine's WebAssembly. */
  engine: hex,
  /** SHA-256 of the load settings that change what the model computes. */
  settings: hex,
  /** Scales of the model's adapters; absent: it has none. */
  scales: adapterScalesSchema.optional(),
  tokens: z.int().min(1).max(STATE_CHUNK_BYTES),
  /** Bytes of the slot's state. */
  bytes: z.int().min(1),
  contextSize: z.int().min(1),
});
export type SavedHeader = z.infer<typeof headerSchema>;

/** Names that users give to saved prompts. */
export const SAVED_NAME = /^[A-Za-z0-9][\w.-]{0,63}$/;

/**
 * Checks a name for a saved prompt.
 * @param field name of the client's parameter, for the error
 * @throws ServiceError invalid_parameter
 */
export function assertSavedName(name: string, field: string): void {
  if (SAVED_NAME.test(name)) return;
  throw new ServiceError(
    "invalid_parameter",
    `${field} must have 1 to 64 letters, digits, dots, hyphens and underscores, and begin with a letter or digit.`,
    { param: field },
  );
}
