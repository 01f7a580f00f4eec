import { duration } from "../../config/duration.ts";

/** In milliseconds. */
export const keepAliveField = duration
  .nullish()
  .describe(
    'How long the model stays in memory after this request: "5m", "1h30m", seconds, 0 to unload it, negative for forever. Default: as it was loaded; when this request loads it, models.keep_alive (5 minutes).',
  );
