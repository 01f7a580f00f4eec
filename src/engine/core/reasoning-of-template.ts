/** What a template ends its prompt with stands behind the last mention of this variable. */
const PROMPT_END = "add_generation_prompt";

/**
 * Whether llama.cpp's grammar for a format has to be told that the answer has no reasoning when thinking is off. A template
 * that ends its prompt with reasoning, begun or complete, must not be read without: the grammar would not fit the prompt.
 * Nor must harmony, whose messages all have channels.
 */
export function canReasonUnasked(template: string): boolean {
  const end = template.slice(template.lastIndexOf(PROMPT_END) + 1);
  return !template.includes("<|channel|>") && !/think|<\|channel>/i.test(end);
}
