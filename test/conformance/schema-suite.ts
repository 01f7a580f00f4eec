import { existsSync, globSync, readFileSync } from "node:fs";
import path from "node:path";
import { z } from "zod";

export type Draft = "draft7" | "draft2020-12";

/** One schema of the suite with its cases. */
export interface SuiteSchema {
  /** File and description. */
  readonly name: string;
  readonly schema: unknown;
  readonly cases: readonly {
    readonly description: string;
    readonly data: unknown;
    readonly valid: boolean;
  }[];
}

const groupsSchema = z.array(
  z.object({
    description: z.string(),
    schema: z.unknown(),
    tests: z.array(z.object({ description: z.string(), data: z.unknown(), valid: z.boolean() })),
  }),
);

const FOLDER =
  process.env.JSON_SCHEMA_SUITE ??
  path.join(import.meta.dirname, "../../node_modules/.cache/json-schema-suite");

/** Reads JSON Schema's official test suite, with the optional parts. */
export function readSuite(draft: Draft): SuiteSchema[] {
  const folder = path.join(FOLDER, "tests", draft);
  if (!existsSync(folder)) {
    throw new Error(
      `The test suite of JSON Schema is not in ${FOLDER}. Run .ci/install-schema-suite, or set JSON_SCHEMA_SUITE.`,
    );
  }
  return globSync("**/*.json", { cwd: folder })
    .toSorted()
    .flatMap((file) => {
      const groups = groupsSchema.parse(JSON.parse(readFileSync(path.join(folder, file), "utf8")));
      return groups.map(({ description, schema, tests }) => ({
        name: `${file.replaceAll("\\", "/")}: ${description}`,
        schema,
        cases: tests,
      }));
    });
}
