import { createHash } from "node:crypto";
import type { z } from "zod";
import type { Dialect } from "../../http/dialect.ts";
import type { Route } from "../../http/route.ts";
import { describedFields, type DescribedField } from "../../http/openapi/described-fields.ts";
import { openApiPath } from "../../http/openapi/openapi-document.ts";

const STYLE = `
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
code,pre{font:0.9em ui-monospace,monospace}
h2{margin-top:3rem;border-bottom:1px solid #8888}
article{margin:1.5rem 0;padding-left:1rem;border-left:3px solid #8888}
h3{margin:0}h3 code{font-size:1rem}
table{border-collapse:collapse;width:100%;margin:.5rem 0}
td,th{border-top:1px solid #8884;padding:.25rem .75rem .25rem 0;text-align:left;vertical-align:top}
caption{text-align:left;font-weight:600}
`;

/** Nothing but the page's own style is allowed, so no name or text in it can become active. */
export const DOCS_CSP = `default-src 'none'; style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'; base-uri 'none'; frame-ancestors 'none'`;

/** A page for people that lists every route with the fields of its body and answers. */
export function docsPage(version: string, described: readonly Dialect[]): string {
  const routes = described.flatMap((entry) => entry.routes);
  const sections = Map.groupBy(routes, (route) => route.tag);
  const body = [...sections].map(
    ([tag, group]) => `<h2>${escapeHtml(tag)}</h2>${group.map(article).join("")}`,
  );
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Daybreak API</title><style>${STYLE}</style>
<h1>Daybreak API</h1>
<p>Version ${escapeHtml(version)}. For programs: <a href="/openapi.json">/openapi.json</a>.</p>
${body.join("\n")}</html>`;
}

function article(route: Route): string {
  const description = route.description === undefined ? "" : `<p>${escapeHtml(route.description)}</p>`;
  const answers = route.answers.map((answer) => {
    const type = answer.contentType ?? "application/json";
    const caption = `${answer.status ?? 200} ${type}: ${answer.description}`;
    return fieldTable(caption, answer.schema, "output");
  });
  return `<article><h3><code>${route.method} ${escapeHtml(openApiPath(route.path))}</code></h3>
<p>${escapeHtml(route.summary)}.</p>${description}
${route.query ? fieldTable("Query", route.query, "input") : ""}
${route.body ? fieldTable("Request body", route.body, "input") : ""}
${answers.join("")}</article>`;
}

function fieldTable(caption: string, schema: z.ZodType | undefined, io: "input" | "output"): string {
  const title = `<caption>${escapeHtml(caption)}</caption>`;
  const rows = (schema ? describedFields(schema, io) : []).map((fields) => fields.map(fieldRow).join(""));
  return `<table>${title}${rows.map((body) => `<tbody>${body}</tbody>`).join("")}</table>`;
}

function fieldRow({ name, required, type, description }: DescribedField): string {
  const shownType = escapeHtml(required ? type : `${type} (optional)`);
  return `<tr><td><code>${escapeHtml(name)}</code><td>${shownType}<td>${escapeHtml(description)}`;
}

function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
