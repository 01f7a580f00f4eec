import type { DaemonClient } from "./daemon-client.ts";
import { lookForModel } from "./look-for-model.ts";

/** What a name may be made of; a sentence has spaces, or is quoted by none who write `run MODEL PROMPT`. */
const NAME = /^[a-z\d][\w./:@-]*$/i;
/** "qwen3:0.6b" or "hf:owner/repo". A URL has slashes behind its colon. */
const TAGGED_NAME = /^[a-z][\w.-]*(?:\/[\w.-]+)*:[\w.-][\w./:@-]*$/i;
/** A name and a quoted prompt. */
const NAME_AND_PROMPT = 2;

/**
 * The model that the first word of a prompt names, as Ollama's `run MODEL PROMPT` has it: one that the daemon has, or a name
 * with a tag alone or before a quoted prompt, so that one that is not there yet is said to be missing. Undefined if it is a
 * word of the prompt.
 */
export async function modelFirst(
  client: DaemonClient,
  words: readonly string[],
): Promise<string | undefined> {
  const [first = ""] = words;
  if (!NAME.test(first)) return undefined;
  if (words.length <= NAME_AND_PROMPT && TAGGED_NAME.test(first)) return first;
  const missing = await lookForModel(client, first);
  if (!missing) return first;
  // In a fleet whose server is away, that is the answer to any word.
  const isWord =
    missing.type === "not_found" ||
    missing.type === "invalid_request" ||
    missing.code === "fleet_unreachable";
  if (isWord) return undefined;
  throw missing;
}
