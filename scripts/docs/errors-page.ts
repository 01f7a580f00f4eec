import { ERROR_CODES } from "../../src/errors/error-codes.ts";

const INTRODUCTION = `# Errors

<!-- Made by scripts/docs/generate.ts from src/errors/error-codes.ts: change that, then run it. -->

Every route answers errors in one shape:

\`\`\`json
{ "error": { "message": "…", "type": "not_found", "code": "model_not_found" } }
\`\`\`

Programs match \`code\`; the message is for people and may change. Each answer carries \`x-request-id\`, which the log has too. The routes under \`/v1\` use the shapes of the APIs they follow, with the same status and, where that API has a place for it, the same code.

An error after a stream has begun comes as its last line or event, never as a cut connection: in newline-delimited JSON as a line \`{"error": {…}}\`.

429 and 503 carry \`Retry-After\` in seconds. "retry" says whether the same request may succeed later without any change.

`;

/** The text of docs/errors.md. */
export function errorsPage(): string {
  const rows = Object.entries(ERROR_CODES).map(
    ([code, { status, type, retryable, meaning }]) =>
      `| \`${code}\` | ${status} | \`${type}\` | ${retryable ? "yes" : "no"} | ${meaning} |`,
  );
  return `${INTRODUCTION}| code | status | type | retry | meaning |\n|---|---|---|---|---|\n${rows.join("\n")}\n`;
}
