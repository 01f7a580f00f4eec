import type { CodePoints } from "../text/code-points.ts";

/** A part of a rule. Equal repetitions of one part are the same object, so that parts can be compared. */
export type GrammarPart =
  | { readonly kind: "set"; readonly id: number; readonly set: CodePoints }
  | { readonly kind: "rule"; readonly id: number; readonly name: string }
  | { readonly kind: "group"; readonly id: number; readonly choices: GrammarChoices }
  | {
      readonly kind: "repeat";
      readonly id: number;
      readonly part: GrammarPart;
      readonly min: number;
      readonly max: number;
    };

/** One sequence of parts or the other. */
export type GrammarChoices = readonly (readonly GrammarPart[])[];

/** A grammar that was read. */
export class Grammar {
  readonly rules = new Map<string, GrammarChoices>();
  readonly #repeats = new Map<string, GrammarPart>();
  #nextId = 0;

  set(set: CodePoints): GrammarPart {
    return { kind: "set", id: this.#nextId++, set };
  }

  reference(name: string): GrammarPart {
    return { kind: "rule", id: this.#nextId++, name };
  }

  group(choices: GrammarChoices): GrammarPart {
    return { kind: "group", id: this.#nextId++, choices };
  }

  repeat(part: GrammarPart, min: number, max: number): GrammarPart {
    if (min === 1 && max === 1) return part;
    const key = `${part.id},${min},${max}`;
    const known = this.#repeats.get(key);
    if (known) return known;
    const made: GrammarPart = { kind: "repeat", id: this.#nextId++, part, min, max };
    this.#repeats.set(key, made);
    return made;
  }
}
