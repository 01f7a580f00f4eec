import { z } from "zod";
import { adapterScalesSchema, STATE_PIECE_BYTES } from "../../engine/protocol/slots.ts";

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
