import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { documentedApis } from "../../../../src/daemon/create-apis.ts";
import { openApiPath } from "../../../../src/http/route.ts";
import { fakeServices, fakeApp } from "../../../support/fake-services.ts";

interface OpenApi {
  openapi: string;
  info: { version: string };
  paths: Record<
    string,
    Record<string, { operationId: string; requestBody?: unknown; parameters: unknown[] }>
  >;
  components: { schemas: Record<string, unknown> };
}

async function document(): Promise<OpenApi> {
  const response = await fakeApp().request("/openapi.json");
  const json: OpenApi = await response.json();
  return json;
}

/** Path without its parameters. */
function wordsOf(path: string): string[] {
  return path.replaceAll(/\{\w+\}/g, "").match(/[\w.]+/g) ?? [];
}

/** Schema of an answer with several forms. */
const schemaOf = (...names: string[]) => ({
  content: {
    "application/json": {
      schema: { anyOf: names.map((name) => ({ $ref: `#/components/schemas/${name}` })) },
    },
  },
});

describe("/openapi.json", () => {
  test("describes every served route", async () => {
    const { paths, openapi, info } = await document();
    expect(openapi).toBe("3.1.0");
    expect(info.version).toBe("1.2.3");
    const described = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const served = documentedApis(fakeServices())
      .flatMap((api) => api.routes)
      .map((route) => `${route.method} ${openApiPath(route.path)}`);
    expect(described.toSorted()).toEqual([...new Set(served)].toSorted());
  });

  test("combines the answers and errors of two APIs with the same path", async () => {
    const list = (await document()).paths["/v1/models"]?.["get"];
    expect(list).toMatchObject({
      parameters: [{ name: "limit" }, { name: "after_id" }, { name: "before_id" }],
      responses: {
        200: schemaOf("OpenAIModelList", "AnthropicModelList"),
        default: { content: { "application/json": { schema: { anyOf: [{}, {}] } } } },
      },
    });
  });

  test("has only routes that the README's table lists", async () => {
    const readme = readFileSync(new URL("../../../../README.md", import.meta.url), "utf8");
    const table = readme.slice(readme.indexOf("## Routes"), readme.indexOf("## Configuration"));
    // The table abbreviates paths with a common prefix, so the test searches for their segments.
    const named = new Set(table.match(/[\w.]+/g));
    const missing = Object.keys((await document()).paths).filter(
      (path) => !/^\/(docs|ollama|ui)\//.test(path) && !wordsOf(path).every((word) => named.has(word)),
    );
    expect(missing).toEqual([]);
  });

  test("gives every operation a unique ID", async () => {
    const ids = Object.values((await document()).paths)
      .flatMap((methods) => Object.values(methods))
      .map((operation) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("has the fields and defaults of bodies and the parameters of paths", async () => {
    const { paths } = await document();
    expect(paths["/api/models/pull"]?.["post"]?.requestBody).toMatchObject({
      content: {
        "application/json": {
          schema: {
            type: "object",
            required: ["name"],
            properties: { name: { type: "string" }, stream: { type: ["boolean", "null"], default: false } },
          },
        },
      },
    });
    expect(paths["/api/models/{name}"]?.["get"]?.parameters).toEqual([
      { name: "name", in: "path", required: true, schema: { type: "string" } },
    ]);
  });

  test("describes a named body schema completely", async () => {
    const { paths, components } = await document();
    expect(paths["/api/generate"]?.["post"]?.requestBody).toMatchObject({
      content: { "application/json": { schema: { $ref: "#/components/schemas/GenerateRequest" } } },
    });
    expect(components.schemas["GenerateRequest"]).toMatchObject({
      type: "object",
      required: ["prompt"],
      properties: { prompt: { type: "string" } },
    });
  });

  test("resolves every reference to a component", async () => {
    const all = await document();
    const references = [...JSON.stringify(all).matchAll(/"\$ref":"([^"]*)"/g)].map(
      ([, reference]) => reference,
    );
    expect(references.length).toBeGreaterThan(0);
    for (const reference of references) {
      expect(reference).toMatch(/^#\/components\/schemas\//);
      expect(all.components.schemas).toHaveProperty([reference!.split("/").at(-1)!]);
    }
  });
});

describe("/docs", () => {
  test("is also served with a trailing slash", async () => {
    const response = await fakeApp().request("/docs/");
    expect([response.status, response.headers.get("location")]).toEqual([302, "/docs"]);
  });

  test.each([
    ["/docs", "text/html"],
    ["/docs/console.js", "text/javascript"],
    ["/docs/swagger-ui-bundle.js", "text/javascript"],
    ["/docs/swagger-ui.css", "text/css"],
  ])("%s may not load resources of other origins or run inline scripts", async (path, type) => {
    const { status, headers } = await fakeApp().request(path);
    expect([status, headers.get("content-type")]).toEqual([200, `${type}; charset=utf-8`]);
    const policy = headers.get("content-security-policy");
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';/);
    expect(policy).not.toContain("unsafe");
  });

  test("returns 304 to a browser that has it cached", async () => {
    const app = fakeApp();
    const etag = (await app.request("/docs/swagger-ui.css")).headers.get("etag") ?? "";
    const again = await app.request("/docs/swagger-ui.css", { headers: { "if-none-match": etag } });
    expect([again.status, await again.text()]).toEqual([304, ""]);
    const other = await app.request("/docs", { headers: { "if-none-match": etag } });
    expect(other.status).toBe(200);
  });
});
