import type { Branch } from "../terms/branch.ts";
import type { ValueBuilder } from "./build-value.ts";
import type { Part } from "./part.ts";
export function buildNumber(branch: Branch, _builder: ValueBuilder, _hint: string): Part {
  return {
    kind: "leaf",
    write: (w) => w.rule("number", `"-"? [0-9]+${branch.number.integer ? "" : ' ("." [0-9]+)?'}`),
  };
}
