import { Ajv, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { isRecord } from "../../src/json/json-values.ts";
import type { Draft } from "./schema-suite.ts";

/** Compiles a schema with ajv, which shares no code with our own validator. */
export function judge(schema: unknown, draft: Draft): ValidateFunction | undefined {
  const options = { strict: false, logger: false, ownProperties: true, multipleOfPrecision: 9 } as const;
  const ajv = draft === "draft7" ? new Ajv(options) : new Ajv2020(options);
  addFormats.default(ajv, { mode: "full" });
  try {
    return ajv.compile(withoutSchemaKeyword(schema));
  } catch {
    // A remote reference, a pattern that is no regular expression with the flag u, or a meta-schema of its own.
    return undefined;
  }
}

/** Removes "$schema", since ajv refuses the address of a meta-schema that it does not have. */
function withoutSchemaKeyword(schema: unknown): object | boolean {
  if (typeof schema === "boolean") return schema;
  return isRecord(schema) ? { ...schema, $schema: undefined } : true;
}
