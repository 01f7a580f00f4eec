import { isRecord } from "../json/json-values.ts";
import { type JsonSchema, normalizeType, type SchemaNode, TYPE_NAMES } from "./json-schema.ts";
import { isKeyword, KEYWORDS } from "./keywords.ts";
import type { IgnoredKeyword } from "./schema-errors.ts";

/** Deepest nesting of schemas: more than any accepted request body can have. */
const MAX_DEPTH = 200;

/** Normalizes the schemas of a document. */
export class Normalizer {
  /** Originals by their normalized nodes. */
  readonly originals = new Map<object, object>();
  /** Dotted paths of the normalized nodes. */
  readonly paths = new Map<object, string>();
  /** Keywords with invalid values. */
  readonly ignored: IgnoredKeyword[] = [];
  /** Normalized nodes by their originals, into which references point. */
  readonly #nodes = new Map<object, JsonSchema>();

  /**
   * Normalizes a schema: every subschema becomes a boolean or an object whose keywords have valid values, drafts 4 and 7
   * become draft 2020-12, and types get their names in JSON Schema. Keywords with invalid values are ignored and
   * reported. Never throws.
   */
  normalize(raw: unknown, path: string, depth = 0): SchemaNode {
    if (typeof raw === "boolean") return raw;
    if (raw === "true" || raw === "false") {
      return raw === "true";
    }
    if (typeof raw === "string" && TYPE_NAMES.has(raw.toLowerCase())) {
      return this.normalize({ type: raw }, path, depth);
    }
    if (!isRecord(raw) || depth > MAX_DEPTH) {
      this.#ignore(path, "it is not a schema", raw);
      return true;
    }
    const known = this.#nodes.get(raw);
    if (known !== undefined) return known;
    const out: Record<string, unknown> = {};
    this.#nodes.set(raw, out);
    this.originals.set(out, raw);
    this.paths.set(out, path);
    for (const [name, value] of Object.entries(raw)) {
      if (value === undefined || !isKeyword(name)) continue;
      const normalized = this.#value(name, value, join(path, name), depth);
      if (normalized !== undefined) define(out, name, normalized);
    }
    this.#normalizeCombinations(raw, out, path, depth);
    return out;
  }

  #value(name: keyof typeof KEYWORDS, value: unknown, path: string, depth: number): unknown {
    switch (KEYWORDS[name].shape) {
      case "schema":
        // Draft 7's tuples and draft 4's lists of dependencies are converted at the end.
        if (value === null || (name === "items" && Array.isArray(value))) return undefined;
        return this.normalize(value, path, depth + 1);
      case "schema list":
        return this.#list(value, path, depth);
      case "schema map":
        return this.#map(value, path, (each, at) => this.normalize(each, at, depth + 1));
      case "dependencies":
        return this.#map(value, path, (each, at) =>
          Array.isArray(each) || typeof each === "string"
            ? this.#names(each, at)
            : this.normalize(each, at, depth + 1),
        );
      case "name map":
        return this.#map(value, path, (each, at) => this.#names(each, at) ?? []);
      case "names":
        return this.#names(value, path);
      case "number":
        return this.#number(name, value, path);
      case "count":
        return this.#count(name, value, path);
      case "text":
        return typeof value === "string" ? value : this.#ignore(path, "it is not a text", value);
      case "flag":
        if (value === "true" || value === "false") return value === "true";
        return typeof value === "boolean" ? value : this.#ignore(path, "it is not a boolean", value);
      case "values":
        return this.#values(value, path);
      case "value":
        return value;
      case "types":
        return normalizeType(value, () => this.#ignore(path, "it is not a type of JSON Schema", value));
      default:
        return undefined;
    }
  }

  #list(value: unknown, path: string, depth: number): readonly unknown[] | undefined {
    if (isRecord(value)) {
      return [this.normalize(value, join(path, "0"), depth + 1)];
    }
    if (!Array.isArray(value) || value.length === 0)
      return this.#ignore(path, "it is not a list of schemas", value);
    return value.map((each, index) => this.normalize(each, join(path, String(index)), depth + 1));
  }

  #map(value: unknown, path: string, each: (value: unknown, path: string) => unknown): object | undefined {
    if (!isRecord(value)) return this.#ignore(path, "it is not an object", value);
    const out: Record<string, unknown> = {};
    for (const [name, entry] of Object.entries(value)) {
      if (entry !== undefined) define(out, name, each(entry, join(path, name)));
    }
    return out;
  }

  #names(value: unknown, path: string): readonly string[] | undefined {
    if (typeof value === "string") return [value];
    if (!Array.isArray(value))
      return typeof value === "boolean" ? undefined : this.#ignore(path, "it is not a list", value);
    return [...new Set(value.filter((name) => typeof name === "string"))];
  }

  #values(value: unknown, path: string): readonly unknown[] | undefined {
    if (Array.isArray(value)) return value.length > 0 ? value : undefined;
    if (isRecord(value) || value === null) return this.#ignore(path, "it is not a list", value);
    return [value];
  }

  #number(name: string, value: unknown, path: string): number | boolean | undefined {
    if (typeof value === "boolean" && name.startsWith("exclusive")) return value;
    const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
    if (typeof number !== "number" || !Number.isFinite(number))
      return this.#ignore(path, "it is not a number", value);
    if (name === "multipleOf" && number <= 0) return this.#ignore(path, "it is not above zero", value);
    return number;
  }

  #count(name: string, value: unknown, path: string): number | undefined {
    const number = this.#number(name, value, path);
    if (typeof number !== "number") return undefined;
    const whole = name.startsWith("max") ? Math.floor(number) : Math.ceil(number);
    return whole < 0 && name.startsWith("min") ? undefined : Math.min(whole, Number.MAX_SAFE_INTEGER);
  }

  /** Normalizes keywords that depend on each other. */
  #normalizeCombinations(
    raw: Readonly<Record<string, unknown>>,
    out: Record<string, unknown>,
    path: string,
    depth: number,
  ): void {
    if (out.$id === undefined && typeof raw.id === "string" && /^(?:#|[a-z]+:)/i.test(raw.id))
      out.$id = raw.id;
    for (const [flag, bound] of [
      ["exclusiveMinimum", "minimum"],
      ["exclusiveMaximum", "maximum"],
    ] as const) {
      if (typeof out[flag] !== "boolean") continue;
      if (out[flag] && out[bound] !== undefined) {
        out[flag] = out[bound];
        delete out[bound];
      } else delete out[flag];
    }
    if (Array.isArray(raw.items)) {
      const prefix = this.#list(raw.items, join(path, "items"), depth);
      if (prefix !== undefined) out.prefixItems = prefix;
      if (out.additionalItems !== undefined) out.items = out.additionalItems;
    }
    delete out.additionalItems;
    this.#requireMarkedProperties(raw, out);
    if (raw.nullable === true || raw.nullable === "true") this.#allowNull(out, path);
  }

  /** Converts `required: true` within a property, as in draft 3. */
  #requireMarkedProperties(raw: Readonly<Record<string, unknown>>, out: Record<string, unknown>): void {
    if (!isRecord(raw.properties)) return;
    const marked = Object.entries(raw.properties)
      .filter(([, value]) => isRecord(value) && value.required === true)
      .map(([name]) => name);
    if (marked.length === 0) return;
    const required = Array.isArray(out.required) ? out.required : [];
    out.required = [...new Set([...required, ...marked])];
  }

  /** Converts OpenAPI's nullable. */
  #allowNull(out: Record<string, unknown>, path: string): void {
    if (Array.isArray(out.enum) && !out.enum.includes(null)) out.enum = [...out.enum, null];
    if ("const" in out) {
      out.enum = [out.const, null];
      delete out.const;
    }
    if (Array.isArray(out.type)) out.type = out.type.includes("null") ? out.type : [...out.type, "null"];
    const applied = ["$ref", "allOf", "anyOf", "oneOf", "not", "if"].filter(
      (name) => out[name] !== undefined,
    );
    if (applied.length === 0) return;
    const rest = { ...out };
    for (const name of Object.keys(rest)) if (name !== "$defs" && name !== "definitions") delete out[name];
    out.anyOf = [rest, { type: ["null"] }];
    this.paths.set(rest, path);
  }

  /** Reports an ignored keyword, unless it is null or an empty list, which have no meaning. */
  #ignore(path: string, reason: string, value: unknown): undefined {
    if (value === null || (Array.isArray(value) && value.length === 0)) return;
    const end = path.lastIndexOf(".");
    this.ignored.push({ path: path.slice(0, Math.max(0, end)), keyword: path.slice(end + 1), reason });
  }
}

/** Sets a property, even with a name such as __proto__. */
function define(object: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

/** Limits on the length of names and paths, because thousands of subschemas have paths made of the client's names. */
const MAX_NAME = 100;
const MAX_PATH = 300;

function join(path: string, name: string): string {
  const shortened = name.slice(0, MAX_NAME);
  if (path.length > MAX_PATH) return `${path.slice(0, MAX_PATH - MAX_NAME)}….${shortened}`;
  return path === "" ? shortened : `${path}.${shortened}`;
}
