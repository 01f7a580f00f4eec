import { modelfileError } from "./modelfile-error.ts";

/** The value of a switch. */
export function readBoolean(line: number, name: string, text: string): boolean {
  const value = text.toLowerCase();
  if (value === "true") return true;
  if (value === "false") return false;
  throw modelfileError(line, `${name} is true or false.`);
}
