import { z } from "zod";
import { ignored } from "../../http/input/known-fields.ts";
import type { PullStep } from "../../models/pull-steps.ts";
import { sha256 } from "./model-entry.ts";
import { modelField, nameField, streamField } from "./ollama-request-fields.ts";

/** Digits of the digest in the status, as clients show it. */
const SHORT_DIGEST = 12;

/** POST /api/pull of the Ollama API. Unknown fields are ignored. */
export const pullRequestSchema = z
  .object({
    model: modelField.nullish(),
    name: nameField,
    stream: streamField,
    insecure: ignored("the hub's address is set in the daemon's configuration"),
    username: ignored("the daemon uses HUB_TOKEN"),
    password: ignored("the daemon uses HUB_TOKEN"),
  })
  .meta({ id: "OllamaPullRequest" });

/** A line of a streamed pull or create; the last status is `success`. */
export const statusLineSchema = z
  .object({
    status: z.string(),
    digest: z.string().optional().describe("Identifies the download; not the hash of a file."),
    total: z.int().optional().describe("Total bytes."),
    completed: z.int().optional().describe("Bytes on disk."),
  })
  .meta({ id: "OllamaStatusLine" });
export type StatusLine = z.output<typeof statusLineSchema>;

/** Converts the steps of a pull to this API's statuses. */
export async function* toPullLines(
  name: string,
  steps: AsyncIterable<PullStep>,
): AsyncGenerator<StatusLine, void, undefined> {
  const hash = await sha256(name);
  yield { status: "pulling manifest" };
  for await (const step of steps) {
    if (step.status === "downloading") {
      yield {
        status: `pulling ${hash.slice(0, SHORT_DIGEST)}`,
        digest: `sha256:${hash}`,
        total: step.totalBytes,
        completed: step.downloadedBytes,
      };
    } else if (step.status === "verifying") {
      yield { status: "verifying sha256 digest" };
    } else {
      yield { status: "writing manifest" };
      yield { status: "success" };
    }
  }
}
