import { z } from "zod";

/**
 * What the models layer remembers from one start to the next, beside the files themselves. Lists, not objects keyed
 * by name: a model may be called `__proto__`.
 */
export const savedStateSchema = z.object({
  /** Version of this layout. */
  version: z.literal(1),
  /** Chosen at run time. */
  defaultAlias: z.string().optional(),
  /** The user's own files, registered by loading them by path. */
  files: z.array(z.object({ alias: z.string(), path: z.string(), projector: z.string().optional() })),
  /** Modelfiles as they were written; relative paths in them count from the folder. */
  definitions: z.array(
    z.object({ alias: z.string(), modelfile: z.string(), baseFolder: z.string().optional() }),
  ),
});
export type SavedState = z.infer<typeof savedStateSchema>;

export const EMPTY_STATE: SavedState = { version: 1, files: [], definitions: [] };
