import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "vitest";
import type { z } from "zod";

/** A request of an API, what it becomes, and a value for each field that makes a difference. */
export interface Conversion {
  readonly name: string;
  readonly schema: z.ZodObject;
  /** The least body. */
  readonly base: Record<string, unknown>;
  readonly convert: (body: Record<string, unknown>) => unknown;
  /** For each field that is honored, a value that differs from what its absence means. */
  readonly samples: Record<string, unknown>;
  /** Honored by the route or by the answer, not by the conversion: other tests show that. */
  readonly elsewhere: readonly string[];
}

/**
 * Compares what the schemas say of their fields, from which the documentation's tables are made, with what happens:
 * whoever says "honored" of a field that changes nothing, or forgets to say something of one that does, fails here.
 */
export function describeHonestFields(conversions: readonly Conversion[]): void {
  describe.for(conversions)(
    "what the schema says of $name is true:",
    ({ schema, base, convert, samples, elsewhere }) => {
      const described = Object.entries<z.ZodType>(schema.shape).map(([field, { description = "" }]) => ({
        field,
        handling: /^(?:Accepted and (ignored)|(Refused))/.exec(description)?.[0] ?? "honored",
      }));
      const changes = async (field: string, value: unknown): Promise<boolean> =>
        !isDeepStrictEqual(await convert({ ...base, [field]: value }), await convert(base));

      test("what is honored makes a difference", async () => {
        const honored = described.filter(
          ({ field, handling }) => handling === "honored" && !elsewhere.includes(field),
        );
        expect(honored.map(({ field }) => field).toSorted()).toEqual(Object.keys(samples).toSorted());
        const idle: string[] = [];
        for (const [field, value] of Object.entries(samples))
          if (!(await changes(field, value))) idle.push(field);
        expect(idle).toEqual([]);
      });

      // One test for each field: an API without such fields has none, in place of one that checks nothing.
      const ignored = described.filter(({ handling }) => handling === "Accepted and ignored");
      test.each(ignored)("$field is ignored, whatever its value", async ({ field }) => {
        for (const value of [null, 1, "x", [], {}]) expect(await changes(field, value)).toBe(false);
      });

      const refused = described.filter(({ handling }) => handling === "Refused");
      test.each(refused)(
        "$field is refused by an error that says so, unless it is empty",
        async ({ field }) => {
          expect(() => convert({ ...base, [field]: "x" })).toThrow(/is not supported/);
          expect(await changes(field, null)).toBe(false);
        },
      );
    },
  );
}
