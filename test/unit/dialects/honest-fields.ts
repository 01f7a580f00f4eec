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
  /** For each field that is honoured, a value that differs from what its absence means. */
  readonly samples: Record<string, unknown>;
  /** Honoured by the route or by the answer, not by the conversion: other tests show that. */
  readonly elsewhere: readonly string[];
}

/**
 * Compares what the schemas say of their fields, from which the documentation's tables are made, with what happens:
 * whoever says "honoured" of a field that changes nothing, or forgets to say something of one that does, fails here.
 */
export function describeHonestFields(conversions: readonly Conversion[]): void {
  describe.for(conversions)(
    "what the schema says of $name is true:",
    ({ schema, base, convert, samples, elsewhere }) => {
      const described = Object.entries<z.ZodType>(schema.shape).map(([field, { description = "" }]) => ({
        field,
        handling: /^(?:Accepted and (ignored)|(Refused))/.exec(description)?.[0] ?? "honoured",
      }));
      const changes = async (field: string, value: unknown): Promise<boolean> =>
        !isDeepStrictEqual(await convert({ ...base, [field]: value }), await convert(base));

      test("what is honoured makes a difference", async () => {
        const honoured = described.filter(
          ({ field, handling }) => handling === "honoured" && !elsewhere.includes(field),
        );
        expect(honoured.map(({ field }) => field).toSorted()).toEqual(Object.keys(samples).toSorted());
        const idle: string[] = [];
        for (const [field, value] of Object.entries(samples))
          if (!(await changes(field, value))) idle.push(field);
        expect(idle).toEqual([]);
      });

      test("what is ignored makes none, whatever its value", async () => {
        const values = [null, 1, "x", [], {}];
        const ignored = described.filter(({ handling }) => handling === "Accepted and ignored");
        const heeded: string[] = [];
        for (const { field } of ignored)
          for (const value of values) if (await changes(field, value)) heeded.push(field);
        expect(heeded).toEqual([]);
      });

      test("what is refused is an error that says so, unless it is empty", async () => {
        for (const { field } of described.filter(({ handling }) => handling === "Refused")) {
          expect(() => convert({ ...base, [field]: "x" })).toThrow(/is not supported/);
          expect(await changes(field, null)).toBe(false);
        }
      });
    },
  );
}
