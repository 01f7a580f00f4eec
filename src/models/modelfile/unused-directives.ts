import { isKnownParameter } from "./parameters.ts";
import { type Instruction, parseInstructions } from "./parse-instructions.ts";

/** Directives of Ollama that have no effect here, and why. */
const OF_OLLAMA = {
  RENDERER: "names code of Ollama; here the chat template writes prompts",
  PARSER: "names code of Ollama; here reasoning and tool calls are found by the marks in the chat template",
  REQUIRES: "is a version of Ollama",
} as const;

/** PARAMETERs of Ollama whose work something else does here. */
const ELSEWHERE: ReadonlyMap<string, string> = new Map([
  ["num_gpu", "has no effect here; GPU_LAYERS says how many layers are on the GPU"],
  [
    "num_thread",
    "has no effect here; engine.threads of the configuration says how many threads an engine has",
  ],
]);

/** A directive that is kept, so that it is not lost for others, and has no effect. */
export interface UnusedDirective extends Pick<Instruction, "key" | "text"> {
  readonly directive: keyof typeof OF_OLLAMA | "PARAMETER";
}

/** Longest value that a note repeats. */
const SHOWN_LENGTH = 40;
/** Nobody reads more of them. */
const MAX_NOTES = 20;

/** Whether a directive has no effect here. */
export function isUnused(instruction: Instruction): boolean {
  return toUnused(instruction) !== undefined;
}

/** The directives that have no effect here, as they were written. */
export function unusedDirectives(instructions: readonly Instruction[]): UnusedDirective[] {
  return instructions.map(toUnused).filter((unused) => unused !== undefined);
}

/** What in a Modelfile has no effect here, in sentences for its author. */
export function modelfileNotes(modelfile: string): string[] {
  const notes = new Set(unusedDirectives(parseInstructions(modelfile)).map(noteOn));
  const told = [...notes].slice(0, MAX_NOTES);
  return notes.size > told.length ? [...told, `And ${notes.size - told.length} more.`] : told;
}

function toUnused({ directive, key, text }: Instruction): UnusedDirective | undefined {
  if (directive === "RENDERER" || directive === "PARSER" || directive === "REQUIRES") {
    return { directive, key, text };
  }
  return directive === "PARAMETER" && !isKnownParameter(key) ? { directive, key, text } : undefined;
}

function noteOn({ directive, key, text }: UnusedDirective): string {
  if (directive === "PARAMETER") {
    return `PARAMETER ${key.slice(0, SHOWN_LENGTH)} ${ELSEWHERE.get(key) ?? "is not known here and has no effect"}.`;
  }
  const shown = text.split("\n", 1)[0]?.slice(0, SHOWN_LENGTH);
  return `${directive} ${shown} has no effect: it ${OF_OLLAMA[directive]}.`;
}
