import { ServiceError } from "../../errors/service-error.ts";

/** The model of a request that may say `model` or, as older clients do, `name`. */
export function requestedName(body: {
  model?: string | null | undefined;
  name?: string | null | undefined;
}): string {
  const name = body.model || body.name;
  if (name) return name;
  throw new ServiceError("invalid_parameter", "model: is required", { param: "model" });
}
