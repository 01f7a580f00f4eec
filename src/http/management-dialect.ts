import type { Dialect } from "./dialect.ts";
import { nativeErrorSchema, renderNativeError } from "./errors/native-error.ts";

/** The daemon's own routes beside generation: models, defaults, status, health, metrics, documentation. */
export const managementDialect: Dialect = {
  name: "Management",
  prefixes: ["/"],
  routes: () => [],
  renderError: renderNativeError,
  errorSchema: nativeErrorSchema,
};
