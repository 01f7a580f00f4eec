import { ServiceError } from "../errors/service-error.ts";

/**
 * The first components of an embedding, brought to length 1 again; meant for models that were trained for it.
 * @throws ServiceError invalid_parameter when more are asked for than the model has
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
