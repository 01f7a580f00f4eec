import { ServiceError } from "../../errors/service-error.ts";
import type { Model, Models } from "../../models/model.ts";
import { toModelName } from "./model-name.ts";

/**
 * The model that a client names.
 * @throws ServiceError model_not_found in the words that clients of this API look for, also for what can be no
 * name of a model here, such as one with an owner: to the client it is a model that has to be pulled
 */
export async function findModel(models: Pick<Models, "get">, name: string): Promise<Model> {
  try {
    return await models.get(toModelName(name));
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (error.code !== "model_not_found" && error.code !== "invalid_model_name") throw error;
    throw new ServiceError("model_not_found", `model '${name}' not found, try pulling it first`, {
      param: "model",
      cause: error,
    });
  }
}
