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
  // Else it would ask a server of its makers whether the document is valid.
  validatorUrl: null,
});
