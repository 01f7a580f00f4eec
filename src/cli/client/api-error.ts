import { z } from "zod";
import { ERROR_CODES, isErrorCode } from "../../errors/error-codes.ts";
import { CliError } from "../cli-error.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";

/** The error body of every native route of the daemon, whole or as the last line of a stream. */
export const errorBody = z.object({
  error: z.object({ message: z.string(), type: z.string(), code: z.string() }),
});

/**
 * Codes and types are those of docs/errors.md. The code says most, also within a stream; the status decides for codes
 * that this program does not know, such as a newer daemon's.
 */
function exitCodeFor(code: string, type: string, sent: number | undefined): ExitCode {
  const status = isErrorCode(code) ? ERROR_CODES[code].status : sent;
  if (status === 400 || status === 413) return EXIT.usage;
  if (type === "not_found" || status === 404) return EXIT.notFound;
  if (type === "conflict" || status === 409) return EXIT.conflict;
  if (type === "overloaded" || status === 503 || status === 429) return EXIT.tryLater;
  return EXIT.error;
}

const KEY_HINT = "The command line takes the key from SERVICE_API_KEY.";

/** The daemon refused a request; `code` and `type` are its own. */
export class ApiError extends CliError {
  readonly type: string;
  /** HTTP status; absent for an error within a stream. */
  readonly status: number | undefined;

  constructor(body: z.infer<typeof errorBody>, status?: number) {
    const { message, type, code } = body.error;
    super(
      exitCodeFor(code, type, status),
      code,
      code === "unauthorized" ? `${message} ${KEY_HINT}` : message,
    );
    this.type = type;
    this.status = status;
  }
}
