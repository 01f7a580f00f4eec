import { defineRoute, type Route } from "../../http/route.ts";
import { DOCS_CSP, docsPage } from "./docs-page.ts";
import type { Dialect } from "../../http/dialect.ts";
import { openApiDocument } from "../../http/openapi/openapi-document.ts";
import type { ManagementServices } from "./management-services.ts";

const tag = "Documentation";

/** The routes that describe all routes. */
export function documentationRoutes(
  { version }: ManagementServices,
  documented: () => readonly Dialect[],
): readonly Route[] {
  return [
    defineRoute({
      method: "GET",
      path: "/openapi.json",
      tag,
      summary: "This API as an OpenAPI 3.1 document",
      answers: [{ description: "The document." }],
      alwaysOn: true,
      handle: (context) => context.json(openApiDocument(version, documented())),
    }),
    defineRoute({
      method: "GET",
      path: "/docs",
      tag,
      summary: "This API as a page to read",
      answers: [{ contentType: "text/html", description: "The page." }],
      alwaysOn: true,
      handle: (context) =>
        context.html(docsPage(version, documented()), 200, {
          "content-security-policy": DOCS_CSP,
          "x-content-type-options": "nosniff",
        }),
    }),
    defineRoute({
      method: "GET",
      path: "/docs/",
      tag,
      summary: "Redirects to /docs",
      answers: [{ status: 302, contentType: "text/plain", description: "To /docs." }],
      alwaysOn: true,
      handle: (context) => context.redirect("/docs"),
    }),
  ];
}
