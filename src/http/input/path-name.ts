import { ServiceError } from "../../errors/service-error.ts";
import type { AppContext } from "../app-env.ts";
import { modelNameSchema } from "./known-fields.ts";

/** The model name in the path, decoded; slashes may come as they are or encoded. */
export function pathName(context: AppContext): string {
  const result = modelNameSchema.safeParse(context.req.param("name"));
  if (result.success) return result.data;
  throw new ServiceError(
    "invalid_model_name",
    "The model name in the path is empty, too long or not printable.",
    {
      param: "name",
    },
  );
}
