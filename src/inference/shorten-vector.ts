import { ServiceError } from "../errors/service-error.ts";

/**
 * The first components of an embedding, normalized again; for models that were trained for it.
 * @throws ServiceError invalid_parameter if the model has fewer
 */
export function shortenVector(vector: readonly number[], dimensions: number): number[] {
  if (dimensions > vector.length) {
    throw new ServiceError("invalid_parameter", `dimensions: the model has ${vector.length}.`, {
      param: "dimensions",
    });
  }
  const kept = vector.slice(0, dimensions);
  const length = Math.hypot(...kept);
  return length === 0 ? kept : kept.map((component) => component / length);
}
