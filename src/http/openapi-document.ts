import { z } from "zod";
import type { Dialect } from "./dialect.ts";
import type { Route, RouteAnswer } from "./route.ts";

type Json = Record<string, unknown>;

/** An OpenAPI 3.1 document of all routes, generated from the schemas that they use. */
export function openApiDocument(version: string, dialects: readonly Dialect[]): Json {
  const components: Json = {};
  const paths: Record<string, Json> = {};
  for (const { routes, errorSchema } of dialects) {
    for (const route of routes) {
      const path = openApiPath(route.path);
      paths[path] = {
        ...paths[path],
        [route.method.toLowerCase()]: operation(route, errorSchema, components),
      };
    }
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Daybreak",
      version,
      description: "A local model inference daemon: GGUF models on llama.cpp in WebAssembly.",
      license: { name: "MIT", identifier: "MIT" },
    },
    paths,
    components: {
      schemas: components,
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "Only when api_keys is configured." },
        apiKey: { type: "apiKey", in: "header", name: "x-api-key" },
      },
    },
    security: [{}, { bearer: [] }, { apiKey: [] }],
  };
}

/** "/api/models/:name{.+}/unload" → "/api/models/{name}/unload". */
export function openApiPath(path: string): string {
  return path.replaceAll(/:(\w+)(?:\{[^/]*?\}(?=\/|$))?/g, "{$1}");
}

function operation(route: Route, errorSchema: z.ZodType, components: Json): Json {
  return {
    tags: [route.tag],
    operationId: operationId(route),
    summary: route.summary,
    ...(route.description !== undefined && { description: route.description }),
    parameters: [...pathParameters(route.path), ...queryParameters(route.query)],
    ...(route.body && {
      requestBody: {
        required: true,
        content: { "application/json": { schema: jsonSchema(route.body, "input", components) } },
      },
    }),
    responses: {
      ...responses(route.answers, components),
      default: {
        description: "An error.",
        content: { "application/json": { schema: jsonSchema(errorSchema, "output", components) } },
      },
    },
  };
}

/** "get_api_models_name"; "/ui" and "/ui/" differ by the last underscore. */
function operationId(route: Route): string {
  const words = openApiPath(route.path).replaceAll(/[{}]/g, "").replaceAll(/\W+/g, "_");
  return `${route.method.toLowerCase()}${words}`;
}

function pathParameters(path: string): Json[] {
  return [...openApiPath(path).matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
}

function queryParameters(schema: z.ZodType | undefined): Json[] {
  if (!(schema instanceof z.ZodObject)) return [];
  return Object.entries<z.ZodType>(schema.shape).map(([name, field]) => ({
    name,
    in: "query",
    required: !field.safeParse(undefined).success,
    schema: jsonSchema(field, "input", {}),
  }));
}

/** Merges answers with the same status, which differ in their content type. */
function responses(answers: readonly RouteAnswer[], components: Json): Record<string, Json> {
  const result: Record<string, { description: string; content?: Json }> = {};
  for (const answer of answers) {
    const status = String(answer.status ?? 200);
    const earlier = result[status];
    const content = {
      ...earlier?.content,
      [answer.contentType ?? "application/json"]: answer.schema
        ? { schema: jsonSchema(answer.schema, "output", components) }
        : {},
    };
    const description = earlier ? `${earlier.description} ${answer.description}` : answer.description;
    result[status] = { description, content };
  }
  return result;
}

/** The JSON Schema of a zod schema; schemas that have an id go to the shared components. */
function jsonSchema(schema: z.ZodType, io: "input" | "output", components: Json): Json {
  const { $schema: _draft, $defs, ...own } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  Object.assign(components, withSharedReferences({ ...$defs }));
  return withSharedReferences(own);
}

function withSharedReferences(value: object): Json {
  const shared: Json = JSON.parse(JSON.stringify(value), (key, entry: unknown) =>
    key === "$ref" && typeof entry === "string" ? entry.replace("#/$defs/", "#/components/schemas/") : entry,
  );
  return shared;
}
