import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "vitest";
import type { z } from "zod";

/** Request schema of an API, its conversion, and a sample value for each supported field. */
export interface Conversion {
  readonly name: string;
  readonly schema: z.ZodObject;
  /** Minimal body. */
  readonly base: Record<string, unknown>;
  readonly convert: (body: Record<string, unknown>) => unknown;
  /** Value of each supported field that differs from its default. */
  readonly samples: Record<string, unknown>;
  /** Fields that affect the route or the answer instead of the conversion, checked by other tests. */
  readonly testedOtherwise: readonly string[];
}

/**
 * Checks the fields' descriptions in schemas, from which the documentation's tables are generated, against the
 * conversion. Fails for a field that is described as supported but changes nothing, and for an ignored or refused one
 * that does.
 */
export function describeHonestFields(conversions: readonly Conversion[]): void {
  describe.for(conversions)(
    "the schema of $name describes its fields correctly:",
    ({ schema, base, convert, samples, testedOtherwise }) => {
      const described = Object.entries<z.ZodType>(schema.shape).map(([field, { description = "" }]) => ({
        field,
        handling: /^(?:Accepted and (ignored)|(Refused))/.exec(description)?.[0] ?? "honored",
      }));
      const changes = async (field: string, value: unknown): Promise<boolean> =>
        !isDeepStrictEqual(await convert({ ...base, [field]: value }), await convert(base));

      test("every supported field changes the converted request", async () => {
        const honored = described.filter(
          ({ field, handling }) => handling === "honored" && !testedOtherwise.includes(field),
        );
        expect(honored.map(({ field }) => field).toSorted()).toEqual(Object.keys(samples).toSorted());
        const idle: string[] = [];
        for (const [field, value] of Object.entries(samples))
          if (!(await changes(field, value))) idle.push(field);
        expect(idle).toEqual([]);
      });

      // One test per field, so that an API without such fields has no test that checks nothing.
      const ignored = described.filter(({ handling }) => handling === "Accepted and ignored");
      test.each(ignored)("$field is ignored with any value", async ({ field }) => {
        for (const value of [null, 1, "x", [], {}]) expect(await changes(field, value)).toBe(false);
      });

      const refused = described.filter(({ handling }) => handling === "Refused");
      test.each(refused)("$field is rejected with its description, unless it is empty", async ({ field }) => {
        expect(() => convert({ ...base, [field]: "x" })).toThrow(/is not supported/);
        expect(await changes(field, null)).toBe(false);
      });
    },
  );
}
