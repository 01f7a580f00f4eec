import { describe, expect, test } from "vitest";
import { checkAgainstSchema, compileSchema } from "../../src/grammar/compile-grammar.ts";
import { grammarAccepts } from "../support/grammar-accepts.ts";
import { SchemaError } from "../../src/grammar/schema-errors.ts";
import { sampleGrammar } from "../support/sample-grammar.ts";
import { judge } from "./judge.ts";
import { readSuite, type Draft, type SuiteSchema } from "./schema-suite.ts";

type CompiledSchema = ReturnType<typeof compileSchema>;

/** Hostile texts of each grammar. */
const SAMPLES = 200;

/** Features that we do not promise: other documents, and assertions that a meta-schema turns on or off. */
const NOT_APPLICABLE = /^(?:refRemote|vocabulary|optional\/(?:cross-draft|content|format-assertion))\b/;

/** Where we mean something else than a draft. */
const MEANT = new Map([
  ["enum.json: empty enum", "an empty enum is ignored, as agents send it for no enum"],
  ["ref.json: ref overrides any sibling keywords", "siblings of $ref hold in every draft"],
  [
    "ref.json: $ref prevents a sibling $id from changing the base uri",
    "siblings of $ref hold in every draft",
  ],
]);

interface Tally {
  byGrammar: number;
  checked: number;
  refused: number;
  unsatisfiable: number;
  tooLarge: number;
  samples: number;
  judgedByOwn: number;
  violations: string[];
  /** Valid instances that the grammar cannot write: another order of properties, another form of a number. */
  unwritten: string[];
  /** The same for formats, whose common texts alone are written. */
  uncommon: number;
  validInstances: number;
}

function compiled(schema: unknown): CompiledSchema | SchemaError {
  try {
    return compileSchema(schema);
  } catch (error) {
    if (error instanceof SchemaError) return error;
    throw error;
  }
}

/** True if ajv agrees with the suite about a schema; where it does not, the suite is right. */
function isJudgeRight(validate: ReturnType<typeof judge>, { cases }: SuiteSchema): boolean {
  return validate !== undefined && cases.every(({ data, valid }) => validate(data) === valid);
}

function follow(draft: Draft): Tally {
  const tally: Tally = {
    byGrammar: 0,
    checked: 0,
    refused: 0,
    unsatisfiable: 0,
    tooLarge: 0,
    samples: 0,
    judgedByOwn: 0,
    violations: [],
    unwritten: [],
    uncommon: 0,
    validInstances: 0,
  };
  for (const each of readSuite(draft)) {
    if (NOT_APPLICABLE.test(each.name) || MEANT.has(each.name)) continue;
    const result = compiled(each.schema);
    if (result instanceof SchemaError) {
      if (result.message.includes("too large")) tally.tooLarge += 1;
      else {
        tally.unsatisfiable += 1;
        if (each.cases.some(({ valid }) => valid)) tally.violations.push(`${each.name}: ${result.message}`);
      }
      continue;
    }
    // In strict mode it is refused, otherwise the rest of it is followed as far as it can be.
    if (result.ignored.length > 0) {
      tally.refused += 1;
      continue;
    }
    if (result.checked.length > 0) tally.checked += 1;
    else tally.byGrammar += 1;
    followSamples(each, result, draft, tally);
    followCases(each, result, tally);
  }
  return tally;
}

function followSamples(each: SuiteSchema, result: CompiledSchema, draft: Draft, tally: Tally): void {
  const validate = judge(each.schema, draft);
  const isRight = isJudgeRight(validate, each);
  if (!isRight) tally.judgedByOwn += 1;
  for (const text of sampleGrammar(result.grammar, SAMPLES)) {
    tally.samples += 1;
    const failure = checkAgainstSchema(each.schema, text);
    // Where there is nothing to check, the check holds for all that the grammar lets through.
    const isPromised = result.checked.length === 0;
    const isWrong = isRight && !failure && !validate?.(JSON.parse(text));
    if ((failure && isPromised) || isWrong) {
      tally.violations.push(
        `${each.name}: ${text} (${failure?.message ?? JSON.stringify(validate?.errors?.[0])})`,
      );
      return;
    }
  }
}

function followCases(each: SuiteSchema, result: CompiledSchema, tally: Tally): void {
  for (const { data, valid, description } of each.cases) {
    const text = JSON.stringify(data);
    const isWritten = grammarAccepts(result.grammar, text);
    if (valid) {
      tally.validInstances += 1;
      if (!isWritten && each.name.includes("format")) tally.uncommon += 1;
      else if (!isWritten) tally.unwritten.push(`${each.name}: ${description} ${text}`);
    } else if (isWritten && checkAgainstSchema(each.schema, text) === undefined) {
      // Formats are annotations in the suite's required part and assertions in the optional one.
      tally.violations.push(`${each.name}: ${description} ${text}`);
    }
  }
}

describe.each(["draft7", "draft2020-12"] as const)("the official suite of %s", (draft) => {
  test("has no schema whose grammar and check let something wrong through", () => {
    const tally = follow(draft);
    const { violations, unwritten, ...figures } = tally;
    const enforced = tally.byGrammar + tally.checked + tally.unsatisfiable;
    const all = enforced + tally.refused + tally.tooLarge;
    console.log(
      `${draft}: ${JSON.stringify({ ...figures, unwritten: unwritten.length })}, ` +
        `${((enforced / all) * 100).toFixed(1)} % of ${all} schemas enforced\n${unwritten.join("\n")}`,
    );
    expect(violations).toEqual([]);
    expect(enforced / all).toBeGreaterThan(0.85);
    expect(tally.unwritten.length / tally.validInstances).toBeLessThan(0.02);
  });
});
