/** Everything that can move a terminal's cursor, change its settings or answer on its behalf; not tab and newline. */
// oxlint-disable-next-line no-control-regex -- finding control characters is the point
const CONTROL_CHARACTERS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** What a model wrote, without what a terminal would take as a command. */
export function printable(text: string): string {
  return text.replace(CONTROL_CHARACTERS, "");
}
