import { z } from "zod";
import { configSchema } from "./schema.ts";

type OptionKind = "string" | "integer" | "number" | "boolean" | "list" | "enum" | "duration";

/** Option of the configuration schema with all its names. */
export interface ConfigOption {
  /** Name in the TOML file: "http.body_limit". */
  readonly name: string;
  readonly path: readonly string[];
  readonly kind: OptionKind;
  /** Environment variables in order of precedence. */
  readonly env: readonly string[];
  /** Command line flag; undefined for secrets, because all users of a machine can read command lines. */
  readonly flag: string | undefined;
  readonly description: string;
  /** Values of an enum. */
  readonly choices: readonly string[];
  /** True if the value must never be shown. */
  readonly secret: boolean;
  /** True if the value is a path or a list of paths. */
  readonly holdsPath: boolean;
}

/** Variables in addition to the generated names. */
const ADDITIONAL_ENV: Readonly<Record<string, string>> = { hub_token: "HUB_TOKEN", hub_url: "HUB_URL" };
const SECRETS = new Set(["api_keys", "hub_token"]);
const PATHS = new Set([
  "socket",
  "cache_dir",
  "models.aliases_file",
  "models.dirs",
  "models.allowed_dirs",
  "fleet.credentials",
  "fleet.tls_ca",
]);

/** All options of the configuration in the order of the schema. */
export const configOptions: readonly ConfigOption[] = flatten(configSchema, []);

function flatten(schema: z.ZodObject, parents: readonly string[]): ConfigOption[] {
  return Object.entries<z.ZodType>(schema.shape).flatMap(([key, field]) => {
    const path = [...parents, key];
    const inner = unwrap(field);
    return inner instanceof z.ZodObject ? flatten(inner, path) : [option(path, field, inner)];
  });
}

function option(path: readonly string[], field: z.ZodType, inner: z.ZodType): ConfigOption {
  const name = path.join(".");
  const words = path.flatMap((part) => part.split("_"));
  const additional = ADDITIONAL_ENV[name];
  const secret = SECRETS.has(name);
  return {
    name,
    path,
    kind: kindOf(inner),
    env: [`SERVICE_${words.join("_").toUpperCase()}`, ...(additional === undefined ? [] : [additional])],
    flag: secret ? undefined : `--${words.join("-")}`,
    description: field.description ?? "",
    choices: inner instanceof z.ZodEnum ? inner.options.map(String) : [],
    secret,
    holdsPath: PATHS.has(name),
  };
}

/** Schema without default and optionality. */
function unwrap(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodPrefault || schema instanceof z.ZodDefault || schema instanceof z.ZodOptional) {
    const inner: unknown = schema.unwrap();
    if (inner instanceof z.ZodType) return unwrap(inner);
  }
  return schema;
}

function kindOf(schema: z.ZodType): OptionKind {
  if (schema instanceof z.ZodBoolean) return "boolean";
  if (schema instanceof z.ZodNumberFormat) return "integer";
  if (schema instanceof z.ZodNumber) return "number";
  if (schema instanceof z.ZodArray) return "list";
  if (schema instanceof z.ZodEnum) return "enum";
  // The only pipe of the schema is the one that turns "5m" into milliseconds.
  if (schema instanceof z.ZodPipe) return "duration";
  return "string";
}
