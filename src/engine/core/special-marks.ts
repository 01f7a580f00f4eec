import { ServiceError } from "../../errors/service-error.ts";
import type { GenerationRequest } from "../protocol/generation.ts";

/** How special tokens are spelled in almost all vocabularies. */
const MARK = /<[^<>]{1,64}>|\[[^[\]\s]{1,32}\]/g;

/**
 * Most of them in one request. llama.cpp's time to find special tokens grows with the square of their number, and all
 * slots wait for it: so many take some seconds, ten times as many minutes. A page of HTML has some thousand tags.
 */
const MOST_MARKS = 32_768;

/** @throws ServiceError invalid_parameter for a text with more marks than an engine should have to look at */
export function checkMarks(text: string): void {
  refuseAbove(countMarks(text, 0));
}

/** The same for all texts of a request together. */
export function checkMarksOf({ input }: GenerationRequest): void {
  let marks = 0;
  for (const text of textsOf(input)) marks = countMarks(text, marks);
  refuseAbove(marks);
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

function countMarks(text: string, before: number): number {
  let marks = before;
  MARK.lastIndex = 0;
  while (marks <= MOST_MARKS && MARK.test(text)) marks += 1;
  return marks;
}

function refuseAbove(marks: number): void {
  if (marks <= MOST_MARKS) return;
  throw new ServiceError(
    "invalid_parameter",
    `The text has more than ${MOST_MARKS} marks like <this> or [THIS], each of which may be a token of its own; send it in parts.`,
  );
}
