import { z } from "zod";
import { type Api, openApiPath, type Route, type RouteAnswer } from "./route.ts";

type Json = Record<string, unknown>;

/** Generates an OpenAPI 3.1 document of all routes from their schemas. */
export function openApiDocument(version: string, apis: readonly Api[]): Json {
  const components: Json = {};
  const described = apis.flatMap(({ routes, errorSchema }) =>
    routes.map((route): DescribedRoute => ({ ...route, errorSchema })),
  );
  const paths = Object.fromEntries(
    [...Map.groupBy(described, ({ path }) => openApiPath(path))].map(([path, here]) => [
      path,
      Object.fromEntries(
        [...Map.groupBy(here, ({ method }) => method.toLowerCase())].map(([method, routes]) => [
          method,
          operation(routes, components),
        ]),
      ),
    ]),
  );
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

interface DescribedRoute extends Route {
  readonly errorSchema: z.ZodType;
}

/** Describes the routes with one path and method: the first one, with the responses of all. */
function operation(routes: readonly DescribedRoute[], components: Json): Json {
  const [route] = routes;
  if (!route) throw new Error("an operation needs a route");
  const descriptions = routes.flatMap(({ description }) => description ?? []);
  return {
    tags: [route.tag],
    operationId: operationId(route),
    summary: route.summary,
    ...(descriptions.length > 0 && { description: descriptions.join(" ") }),
    parameters: [...pathParameters(route.path), ...routes.flatMap(({ query }) => queryParameters(query))],
    ...(route.body && {
      requestBody: {
        required: route.bodyWhenEmpty === undefined,
        content: { "application/json": { schema: jsonSchema(route.body, "input", components) } },
      },
    }),
    responses: {
      ...responses(
        routes.flatMap(({ answers }) => answers),
        components,
      ),
      default: {
        description: "An error.",
        content: {
          "application/json": {
            schema: oneOf(routes.map(({ errorSchema }) => jsonSchema(errorSchema, "output", components))),
          },
        },
      },
    },
  };
}

function oneOf(schemas: readonly Json[]): Json {
  const [first] = schemas;
  return first && schemas.length === 1 ? first : { anyOf: schemas };
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

/** Merges responses with the same status, which differ in content type or API. */
function responses(answers: readonly RouteAnswer[], components: Json): Record<string, Json> {
  const byStatus = Map.groupBy(answers, ({ status }) => String(status ?? 200));
  return Object.fromEntries(
    [...byStatus].map(([status, some]) => [
      status,
      {
        description: some.map(({ description }) => description).join(" "),
        content: Object.fromEntries(
          [...Map.groupBy(some, ({ contentType }) => contentType ?? "application/json")].map(
            ([type, same]) => {
              const schemas = same.flatMap(({ schema }) =>
                schema ? [jsonSchema(schema, "output", components)] : [],
              );
              return [type, schemas.length > 0 ? { schema: oneOf(schemas) } : {}];
            },
          ),
        ),
      },
    ]),
  );
}

/** JSON Schema of a zod schema; schemas with an id are added to the components. */
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
