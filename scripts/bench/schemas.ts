#!/usr/bin/env node
import { parseArgs } from "node:util";
import { compileSchema } from "../../src/grammar/compile-grammar.ts";
import { SchemaError } from "../../src/grammar/schema-errors.ts";
import { REAL_SCHEMAS } from "../../test/conformance/real-schemas.ts";
import { readSuite } from "../../test/conformance/schema-suite.ts";
import { markdownTable } from "./daemon/statistics.ts";

const HELP = `Time that schemas take to become grammars, and the size of the grammars.

  node scripts/bench/schemas.ts [options]

  --repeats N     compile each schema N times, and take the median (default 5)
  --only WORD     only schemas with this word in their name

The schemas are those of agents in test/conformance/real-schemas.ts, and JSON Schema's official suite where
.ci/install-schema-suite has brought it. Times are of one processor that is warm: the first schema of a process takes
longer.`;

const { values } = parseArgs({
  options: {
    repeats: { type: "string", default: "5" },
    only: { type: "string", default: "" },
    help: { type: "boolean", short: "h", default: false },
  },
});

interface Measured {
  readonly name: string;
  readonly ms: number;
  readonly characters: number;
}

if (values.help) console.log(HELP);
else {
  const groups: [string, [string, unknown][]][] = [["real", Object.entries(REAL_SCHEMAS)]];
  for (const draft of ["draft7", "draft2020-12"] as const) {
    groups.push([draft, readSuite(draft).map(({ name, schema }) => [name, schema])]);
  }
  const rows = groups.map(([group, schemas]) => rowOf(group, schemas));
  console.log(
    markdownTable(
      ["schemas", "count", "median ms", "p99 ms", "worst ms", "median characters", "worst"],
      rows,
    ),
  );
}

function rowOf(group: string, schemas: readonly (readonly [string, unknown])[]): string[] {
  const measured = schemas
    .filter(([name]) => name.includes(values.only))
    .flatMap(([name, schema]) => measure(name, schema) ?? []);
  const times = measured.map(({ ms }) => ms).toSorted((a, b) => a - b);
  const sizes = measured.map(({ characters }) => characters).toSorted((a, b) => a - b);
  const worst = measured.toSorted((a, b) => b.ms - a.ms)[0];
  return [
    group,
    String(measured.length),
    at(times, 0.5).toFixed(2),
    at(times, 0.99).toFixed(2),
    at(times, 1).toFixed(2),
    String(at(sizes, 0.5)),
    worst ? `${worst.name} (${worst.characters} characters)` : "",
  ];
}

/** Undefined for a schema that is refused. */
function measure(name: string, schema: unknown): Measured | undefined {
  const times: number[] = [];
  let characters = 0;
  for (let count = 0; count < Number(values.repeats); count += 1) {
    const start = performance.now();
    try {
      characters = compileSchema(schema).grammar.length;
    } catch (error) {
      if (error instanceof SchemaError) return undefined;
      throw error;
    }
    times.push(performance.now() - start);
  }
  return {
    name,
    ms: at(
      times.toSorted((a, b) => a - b),
      0.5,
    ),
    characters,
  };
}

function at(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}
