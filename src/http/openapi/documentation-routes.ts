import { defineRoute, type Route } from "../route.ts";
import { DOCS_CSP, docsPage } from "./docs-page.ts";
import { openApiDocument, type DescribedDialect } from "./openapi-document.ts";

const tag = "Documentation";

/** The routes that describe all routes; `described` is read at each request, so it may be completed later. */
export function documentationRoutes(
  version: string,
  described: () => readonly DescribedDialect[],
): readonly Route[] {
  return [
    defineRoute({
      method: "GET",
      path: "/openapi.json",
      tag,
      summary: "This API as an OpenAPI 3.1 document",
      answers: [{ description: "The document." }],
      alwaysOn: true,
      handle: (context) => context.json(openApiDocument(version, described())),
    }),
    defineRoute({
      method: "GET",
      path: "/docs",
      tag,
      summary: "This API as a page to read",
      answers: [{ contentType: "text/html", description: "The page." }],
      alwaysOn: true,
      handle: (context) =>
        context.html(docsPage(version, described()), 200, {
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
