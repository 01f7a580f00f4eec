import { z } from "zod";
import { adapterScalesSchema, STATE_PIECE_BYTES } from "../../engine/protocol/calls.ts";
import { ServiceError } from "../../errors/service-error.ts";

const hex = z.string().regex(/^[0-9a-f]{64}$/);

/** What a saved prompt says of itself. */
export const headerSchema = z.object({
  /** SHA-256 of the model's files, and of its adapters'. */
  model: hex,
  /** SHA-256 of the engine's WebAssembly. */
  engine: hex,
  /** SHA-256 of the load settings that change what the model computes. */
  settings: hex,
  /** Scales of the model's adapters, which are among its files; absent: it has none. */
  scales: adapterScalesSchema.optional(),
  tokens: z.int().min(1).max(STATE_PIECE_BYTES),
  /** Bytes of the state. */
  bytes: z.int().min(1),
  contextSize: z.int().min(1),
});
export type SavedHeader = z.infer<typeof headerSchema>;

/** Names that users give to saved prompts. */
export const SAVED_NAME = /^[A-Za-z0-9][\w.-]{0,63}$/;

/**
 * Refuses what cannot be the name of a saved prompt.
 * @param field what the client calls it
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
