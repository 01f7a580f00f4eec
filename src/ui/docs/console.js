/* global SwaggerUIBundle */

SwaggerUIBundle({
  dom_id: "#console",
  url: "openapi.json",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: true,
  tryItOutEnabled: true,
  // By default, Swagger UI sends the document's address to a public validator.
  validatorUrl: null,
});
