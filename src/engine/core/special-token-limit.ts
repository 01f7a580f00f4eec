import { ServiceError } from "../../errors/service-error.ts";
import type { GenerationRequest } from "../protocol/generation.ts";

/** How special tokens are spelled in almost all vocabularies. */
const SPECIAL_TOKEN = /<[^<>]{1,64}>|\[[^[\]\s]{1,32}\]/g;

/**
 * Most possible special tokens in one request, far more than the tags on an HTML page. The time that llama.cpp takes to
 * find them grows quadratically, and all slots wait for it.
 */
const MAX_SPECIAL_TOKENS = 32_768;

/** @throws ServiceError invalid_parameter when the text has too many possible special tokens */
export function checkSpecialTokens(text: string): void {
  refuseAbove(countSpecialTokens(text, 0));
}

/** Checks all texts of a request together. @throws ServiceError invalid_parameter */
export function checkSpecialTokensOf({ input }: GenerationRequest): void {
  let count = 0;
  for (const text of textsOf(input)) count = countSpecialTokens(text, count);
  refuseAbove(count);
}

function* textsOf(input: GenerationRequest["input"]): Generator<string, void, undefined> {
  if (input.kind === "prompt") {
    yield input.prompt;
    return;
  }
  for (const { content, reasoning, toolCalls } of input.messages) {
    if (reasoning !== undefined) yield reasoning;
    for (const part of content) if (part.type === "text") yield part.text;
    for (const call of toolCalls ?? []) yield call.arguments;
  }
}

function countSpecialTokens(text: string, before: number): number {
  let count = before;
  SPECIAL_TOKEN.lastIndex = 0;
  while (count <= MAX_SPECIAL_TOKENS && SPECIAL_TOKEN.test(text)) count += 1;
  return count;
}

function refuseAbove(count: number): void {
  if (count <= MAX_SPECIAL_TOKENS) return;
  throw new ServiceError(
    "invalid_parameter",
    `The text has more than ${MAX_SPECIAL_TOKENS} tags such as <this> or [THIS], which may be special tokens; send it in parts.`,
  );
}
