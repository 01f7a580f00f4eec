import { ServiceError } from "../../errors/service-error.ts";
import type { Model } from "../../models/model.ts";
import type { Services } from "../services.ts";

/** The model that a request names, or the default one. @throws ServiceError model_not_found */
export async function requiredModel(
  models: Services["models"],
  name: string | null | undefined,
): Promise<Model> {
  if (name) return await models.get(name);
  const all = await models.list();
  const model = all.find(({ isDefault }) => isDefault);
  if (model) return model;
  throw new ServiceError("model_not_found", "There is no default model; name one in the field model.", {
    param: "model",
  });
}
