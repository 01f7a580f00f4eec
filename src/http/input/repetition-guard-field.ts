import { z } from "zod";

/** A field of the daemon's own, in every API that generates. */
export const repetitionGuardField = z
  .boolean()
  .nullish()
  .describe(
    "Stop the answer when it runs in circles: the same tokens at least four times, for 512 tokens in all (256 for up to four tokens, 4096 for numbers). Default: the model's, otherwise models.repetition_guard (false).",
  );
