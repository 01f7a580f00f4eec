import { isRecord } from "../json/json-values.ts";
import type { JsonSchema, SchemaNode } from "./json-schema.ts";
import { isKeyword, KEYWORDS } from "./keywords.ts";
import { Normalizer } from "./normalize-schema.ts";
import type { IgnoredKeyword } from "./schema-errors.ts";

/** Base URI of references in a schema without `$id`; no real URI has this host. */
const DEFAULT_BASE = "https://schema.invalid/";

/** Resolved reference. */
interface Reference {
  readonly keyword: string;
  /** Undefined if the document does not contain the target. */
  readonly target: SchemaNode | undefined;
  readonly isDynamic: boolean;
}

/** Normalized schema that resolves references within itself; nothing is ever fetched. */
export class SchemaDocument {
  readonly root: SchemaNode;
  readonly #normalizer = new Normalizer();
  readonly #bases = new Map<JsonSchema, string>();
  readonly #resources = new Map<string, JsonSchema>();
  readonly #anchors = new Map<string, JsonSchema>();
  /** Number of subschemas with each dynamic anchor. */
  readonly #dynamicAnchors = new Map<string, number>();
  #hasRecursiveAnchor = false;

  constructor(schema: unknown) {
    this.root = this.#normalize(schema, "", DEFAULT_BASE);
    if (typeof this.root === "object") this.#resources.set(DEFAULT_BASE, this.root);
  }

  get ignored(): readonly IgnoredKeyword[] {
    return this.#normalizer.ignored;
  }

  /** Dotted path of a subschema, "" for the root. */
  pathOf(node: JsonSchema): string {
    return this.#normalizer.paths.get(node) ?? "";
  }

  /** Original of a subschema, with its annotations. */
  originalOf(node: JsonSchema): object | undefined {
    return this.#normalizer.originals.get(node);
  }

  /** Resolves a `$ref` in `node`; undefined if the document does not contain the target. */
  resolve(node: JsonSchema, reference: string): SchemaNode | undefined {
    const base = this.#bases.get(node) ?? DEFAULT_BASE;
    const address = resolveAddress(reference, base);
    if (address === undefined) return undefined;
    const [resource, fragment] = splitOnce(address, "#");
    const decoded = decode(fragment);
    if (decoded === undefined) return undefined;
    if (decoded !== "" && !decoded.startsWith("/")) return this.#anchors.get(`${resource}#${decoded}`);
    const target = this.#resources.get(resource);
    if (target === undefined || decoded === "") return target;
    return this.#follow(target, resource, decoded);
  }

  /**
   * Resolves all references of a node: `$ref`, and `$dynamicRef` or `$recursiveRef` if there is only one candidate. If
   * the target depends on the dynamic scope, it is undefined and `isDynamic` is true.
   */
  references(node: JsonSchema): readonly Reference[] {
    const references: Reference[] = [];
    for (const keyword of ["$ref", "$dynamicRef", "$recursiveRef"] as const) {
      const reference = node[keyword];
      if (typeof reference !== "string") continue;
      const isDynamic = keyword !== "$ref" && this.#isAmbiguous(keyword, reference);
      const target = isDynamic ? undefined : this.resolve(node, reference);
      references.push({ keyword, target, isDynamic });
    }
    return references;
  }

  #isAmbiguous(keyword: "$dynamicRef" | "$recursiveRef", reference: string): boolean {
    if (keyword === "$recursiveRef") return this.#hasRecursiveAnchor;
    const name = reference.slice(reference.indexOf("#") + 1);
    return (this.#dynamicAnchors.get(name) ?? 0) > 1;
  }

  #follow(from: JsonSchema, base: string, pointer: string): SchemaNode | undefined {
    let at: unknown = this.#normalizer.originals.get(from);
    for (const step of pointer.slice(1).split("/")) {
      const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
      if (Array.isArray(at)) at = /^\d+$/.test(name) ? at[Number(name)] : undefined;
      else at = isRecord(at) && Object.hasOwn(at, name) ? at[name] : undefined;
    }
    if (typeof at === "boolean") return at;
    if (!isRecord(at)) return undefined;
    return this.#normalize(at, pointer.slice(1).replaceAll("/", "."), base);
  }

  #normalize(raw: unknown, path: string, base: string): SchemaNode {
    const schema = this.#normalizer.normalize(raw, path);
    this.#index(schema, base);
    return schema;
  }

  #index(schema: SchemaNode, base: string): void {
    if (typeof schema === "boolean" || this.#bases.has(schema)) return;
    let own = base;
    if (typeof schema.$id === "string") {
      const address = resolveAddress(schema.$id, base);
      const [resource, fragment] = splitOnce(address ?? base, "#");
      if (fragment !== "") this.#setOnce(this.#anchors, `${resource}#${fragment}`, schema);
      else if (address !== undefined) {
        own = resource;
        this.#setOnce(this.#resources, resource, schema);
      }
    }
    this.#bases.set(schema, own);
    this.#hasRecursiveAnchor ||= schema.$recursiveAnchor === true;
    const dynamic = schema.$dynamicAnchor;
    if (dynamic !== undefined)
      this.#dynamicAnchors.set(dynamic, (this.#dynamicAnchors.get(dynamic) ?? 0) + 1);
    for (const anchor of [schema.$anchor, schema.$dynamicAnchor]) {
      if (typeof anchor === "string") this.#setOnce(this.#anchors, `${own}#${anchor}`, schema);
    }
    for (const child of childrenOf(schema)) this.#index(child, own);
  }

  #setOnce(map: Map<string, JsonSchema>, key: string, node: JsonSchema): void {
    if (!map.has(key)) map.set(key, node);
  }
}

/** Shapes of keywords with subschemas. */
const SUBSCHEMAS = new Set(["schema", "schema list", "schema map", "dependencies"]);

/** Direct subschemas of a normalized schema. */
function childrenOf(schema: JsonSchema): SchemaNode[] {
  return Object.entries(schema).flatMap(([name, value]: [string, unknown]) => {
    const shape = isKeyword(name) ? KEYWORDS[name].shape : "other";
    if (!SUBSCHEMAS.has(shape)) return [];
    const children: unknown[] = shape === "schema" ? [value] : Object.values(Object(value));
    return children.filter(isNode);
  });
}

/** True for a normalized schema, and not for a list of names. */
function isNode(value: unknown): value is SchemaNode {
  return typeof value === "boolean" || isRecord(value);
}

function resolveAddress(reference: string, base: string): string | undefined {
  if (reference.startsWith("#")) return `${splitOnce(base, "#")[0]}${reference}`;
  return URL.canParse(reference, base) ? new URL(reference, base).href : undefined;
}

function decode(fragment: string): string | undefined {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return undefined;
  }
}

function splitOnce(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + mark.length)];
}
