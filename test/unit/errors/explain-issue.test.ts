import { describe, expect, test } from "vitest";
import { z } from "zod";
import { explainIssue, EXPLAINABLE, issueText } from "../../../src/errors/explain-issue.ts";
import { documentedApis } from "../../../src/daemon/create-apis.ts";
import { fakeServices } from "../../support/fake-services.ts";

function explained(schema: z.ZodType, value: unknown): string[] {
  const { error } = schema.safeParse(value, EXPLAINABLE);
  return (error?.issues ?? []).map((issue) => {
    const explanation = explainIssue(issue, value);
    return `${explanation.path.map(String).join(".")}: ${issueText(explanation)}`;
  });
}

const part = z.union([z.string(), z.object({ text: z.string(), size: z.int().min(1).max(9) })]);
const tool = z.union([
  z.object({ type: z.literal("function"), name: z.string() }),
  z.object({ type: z.literal("search") }),
]);
const schema = z.object({
  tools: z.array(tool).default([]),
  name: z.string().min(1).max(3).default("a"),
  count: z.int().min(0).default(0),
  rate: z.number().gt(0).lt(2).default(1),
  on: z.boolean().default(false),
  kind: z.enum(["a", "b", "c"]).default("a"),
  always: z.literal("x").default("x"),
  parts: z.array(part).min(1).max(2).default(["a"]),
  shape: z
    .discriminatedUnion("type", [z.object({ type: z.literal("x") }), z.object({ type: z.literal("y") })])
    .default({ type: "x" }),
  maybe: z.string().nullable().default(null),
  own: z
    .string()
    .refine((text) => text !== "no", "must not be no")
    .default(""),
});

describe("an explanation of an invalid value", () => {
  test.each([
    [{ name: 5 }, "name: must be a string, got 5"],
    [{ name: "" }, "name: must not be empty"],
    [{ name: "four" }, 'name: must have at most 3 characters, got "four"'],
    [{ count: "abc" }, 'count: must be a whole number, got "abc"'],
    [{ count: 1.5 }, "count: must be a whole number, got 1.5"],
    [{ count: -1 }, "count: must be at least 0, got -1"],
    [{ count: Infinity }, "count: must be a whole number, got Infinity"],
    [{ rate: 0 }, "rate: must be more than 0, got 0"],
    [{ rate: 2 }, "rate: must be less than 2, got 2"],
    [{ rate: null }, "rate: must be a number, got null"],
    [{ on: "yes" }, 'on: must be true or false, got "yes"'],
    [{ kind: "d" }, 'kind: must be "a", "b" or "c", got "d"'],
    [{ always: 1 }, 'always: must be "x", got 1'],
    [{ parts: [] }, "parts: must not be empty"],
    [{ parts: ["a", "b", "c"] }, "parts: must have at most 2 items"],
    [{ parts: {} }, "parts: must be an array, got an object"],
    [{ parts: [5] }, "parts.0: must be a string or an object, got 5"],
    [{ parts: [{ size: 1 }] }, "parts.0.text: is missing"],
    [{ parts: [{ text: "a", size: 10 }] }, "parts.0.size: must be at most 9, got 10"],
    [{ shape: { type: "z" } }, 'shape.type: must be "x" or "y", got "z"'],
    [{ shape: {} }, 'shape.type: is missing; it must be "x" or "y"'],
    [{ tools: [{ type: "function" }] }, "tools.0.name: is missing"],
    [{ tools: [{ type: "none" }] }, 'tools.0.type: must be "function" or "search", got "none"'],
    [{ maybe: 5 }, "maybe: must be a string, got 5"],
    [{ own: "no" }, 'own: must not be no, got "no"'],
    [{ name: ["x".repeat(100)] }, "name: must be a string, got an array"],
    [[], ": must be an object, got an empty array"],
  ])("%j: %s", (value, text) => {
    expect(explained(schema, value)).toEqual([text]);
  });

  test("truncates a long value", () => {
    const [text = ""] = explained(schema, { count: "x".repeat(1000) });
    expect(text.length).toBeLessThan(120);
  });
});

const WRONG: readonly unknown[] = [
  null,
  true,
  -1,
  1.5,
  1e99,
  "",
  "some text",
  [],
  [null],
  [{ type: "none" }],
  [[1]],
  {},
  { type: "none" },
];

type Schema = z.core.JSONSchema.BaseSchema;

/** Names of the fields of a body or its items, also through references and alternatives in its schema. */
function fieldsOf(body: Schema, named: Readonly<Record<string, Schema>> = body.$defs ?? {}): string[] {
  const own = named[body.$ref?.split("/").at(-1) ?? ""];
  const shapes = [
    own,
    body.items,
    ...(body.anyOf ?? []),
    ...(body.allOf ?? []),
    ...(body.oneOf ?? []),
  ].flat();
  const inner = shapes.flatMap((shape) => (typeof shape === "object" ? fieldsOf(shape, named) : []));
  return [...new Set([...Object.keys(body.properties ?? {}), ...inner])];
}

describe.each(
  documentedApis(fakeServices())
    .flatMap((api) => api.routes)
    .filter(({ body }) => body),
)("the body of $method $path", ({ body = z.never() }) => {
  test("rejects every invalid field with a message that names it", () => {
    const json = z.toJSONSchema(body, { io: "input", unrepresentable: "any" });
    const bodyWith = (field: string, wrong: unknown): unknown =>
      json.type === "array" ? [{ [field]: wrong }] : { [field]: wrong };
    const fields = fieldsOf(json);
    const texts = WRONG.flatMap((wrong) =>
      fields.flatMap((field) => explained(body, bodyWith(field, wrong))),
    );
    expect(texts).not.toEqual([]);
    for (const text of [...texts, ...explained(body, {})]) {
      expect(text).not.toMatch(/Invalid|Too (small|big)|expected|received|undefined|No matching|\[object/);
      expect(text).toMatch(/^[\w.]*: \S/);
    }
  });
});
