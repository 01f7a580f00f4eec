import { ERROR_CODES } from "../../src/errors/error-codes.ts";

const INTRODUCTION = `# Errors

<!-- Made by scripts/docs/generate.ts from src/errors/error-codes.ts: change that, then run it. -->

Errors have the same format on every route:

\`\`\`json
{ "error": { "message": "…", "type": "not_found", "code": "model_not_found" } }
\`\`\`

Programs should match \`code\`; the message is for people and may change. Every response has an \`x-request-id\`, which is also in the log. The routes under \`/v1\` use the error formats of their APIs, with the same status and, where the format has a field for it, the same code.

Once a stream has begun, an error is its last line or event; the connection is not simply cut. In newline-delimited JSON it is a line \`{"error": {…}}\`.

429 and 503 have \`Retry-After\` in seconds. "retry" says whether the same request may succeed later without changes.

`;

/** The text of docs/errors.md. */
export function errorsPage(): string {
  const rows = Object.entries(ERROR_CODES).map(
    ([code, { status, type, retryable, meaning }]) =>
      `| \`${code}\` | ${status} | \`${type}\` | ${retryable ? "yes" : "no"} | ${meaning} |`,
  );
  return `${INTRODUCTION}| code | status | type | retry | meaning |\n|---|---|---|---|---|\n${rows.join("\n")}\n`;
}
