import type { SchemaGap } from "./schema-gap.ts";
import type { Branch } from "./terms/branch.ts";
import type { TextSet } from "./text/text-set.ts";
import type { WorkBudget } from "./work-budget.ts";
export interface NoTextSet {
  readonly reason: string;
  readonly kind: SchemaGap["kind"];
}
export class TextRules {
  begin(_b: WorkBudget, _c: boolean): void {}
  pattern(_s: string): TextSet | NoTextSet {
    return { reason: "x", kind: "checked" };
  }
  format(s: string): TextSet | NoTextSet | undefined {
    return s === "email" ? { reason: "x", kind: "checked" } : undefined;
  }
  not(_s: TextSet): TextSet | undefined {
    return undefined;
  }
  and(_s: TextSet[]): TextSet | undefined {
    return undefined;
  }
  or(_s: TextSet[]): TextSet | undefined {
    return undefined;
  }
  listed(_s: readonly string[]): TextSet | undefined {
    return undefined;
  }
  otherThan(_s: readonly string[]): TextSet | undefined {
    return undefined;
  }
  ofBranch(_b: Branch): TextSet | undefined {
    return undefined;
  }
  fitsPattern(v: string, p: string): boolean {
    try {
      return new RegExp(p, "u").test(v);
    } catch {
      return true;
    }
  }
  fitsFormat(_v: string, _p: string): boolean {
    return true;
  }
}
