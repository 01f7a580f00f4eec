/**
 * Tags that leave no space around them: text is written as strings within tags, so that it comes out the same
 * whatever an engine does with the line ends and spaces between tags.
 */
export const statement = (code: string): string => `{%- ${code} -%}`;
export const output = (code: string): string => `{{- ${code} -}}`;

/** A string literal of Jinja. No two characters that could begin or end a tag stand side by side in it. */
export function literal(text: string): string {
  return text
    .split(/(?<=[{}%#-])(?=[{}%#-])/)
    .map((part) => JSON.stringify(part))
    .join(" + ");
}
