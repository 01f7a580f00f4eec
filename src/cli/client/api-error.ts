import { z } from "zod";
import { CliError } from "../cli-error.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";

/** The error body of every own route of the daemon, whole or as the last line of a stream. */
export const errorBody = z.object({
  error: z.object({ message: z.string(), type: z.string(), code: z.string() }),
});

/** Names of codes and types are those of the interface specification, part "Errors". */
function exitCodeFor(type: string, status: number | undefined): ExitCode {
  if (type === "not_found" || status === 404) return EXIT.notFound;
  if (type === "conflict" || status === 409) return EXIT.conflict;
  if (type === "overloaded" || status === 503 || status === 429) return EXIT.tryLater;
  return EXIT.error;
}

/** The daemon refused a request; `code` and `type` are its own. */
export class ApiError extends CliError {
  readonly type: string;
  /** HTTP status; absent for an error within a stream. */
  readonly status: number | undefined;

  constructor(body: z.infer<typeof errorBody>, status?: number) {
    const { message, type, code } = body.error;
    super(exitCodeFor(type, status), code, message);
    this.type = type;
    this.status = status;
  }
}
