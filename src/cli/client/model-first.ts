import { z } from "zod";
import { ApiError } from "./api-error.ts";
import type { DaemonClient } from "./daemon-client.ts";
import { modelPath } from "./model-path.ts";

/** What a name may be made of; a sentence has spaces, or is quoted by none who write `run MODEL PROMPT`. */
const NAME = /^[a-z\d][\w./:@-]*$/i;
/** "qwen3:0.6b" or "hf:owner/repo": no other word is written like this. A URL has slashes behind its colon. */
const TAGGED_NAME = /^[a-z][\w.-]*(?:\/[\w.-]+)*:[\w.-][\w./:@-]*$/i;

/**
 * The model that the first word of a prompt names, as Ollama's `run MODEL PROMPT` has it: one that the daemon has, or any
 * name with a tag, so that one that is not there yet is said to be missing. Undefined if it is a word of the prompt.
 */
export async function modelFirst(
  client: DaemonClient,
  words: readonly string[],
): Promise<string | undefined> {
  const [first = ""] = words;
  if (!NAME.test(first)) return undefined;
  if (TAGGED_NAME.test(first)) return first;
  try {
    await client.json(z.unknown(), "GET", modelPath(first));
    return first;
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}
