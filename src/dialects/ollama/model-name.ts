import { ServiceError } from "../../errors/service-error.ts";
import type { Model } from "../../models/model.ts";
import type { Models } from "../../models/models.ts";

/** The namespace of names without an owner; clients may write it out. */
const LIBRARY = /^(?:registry\.ollama\.ai\/)?library\//;
/** How clients write a hub repository. */
const HUB_ADDRESS = /^(?:hf\.co|huggingface\.co)\//i;
const LATEST = ":latest";

/** Converts a client's model name to the daemon's: `hf.co/owner/repo:Q4_0` is `hf:owner/repo:Q4_0`. */
export function toModelName(name: string): string {
  const plain = name.replace(LIBRARY, "");
  if (!HUB_ADDRESS.test(plain)) return plain;
  const spec = plain.replace(HUB_ADDRESS, "hf:");
  return spec.endsWith(LATEST) ? spec.slice(0, -LATEST.length) : spec;
}

/** The name in lists, where every name has a tag. */
export function toListedName(alias: string): string {
  return alias.includes(":") ? alias : alias + LATEST;
}

/** The model of a request, from `model` or, for older clients, `name`. */
export function requestedName(body: {
  model?: string | null | undefined;
  name?: string | null | undefined;
}): string {
  const name = body.model || body.name;
  if (name) return name;
  throw new ServiceError("invalid_parameter", "model: is required.", { param: "model" });
}

/**
 * Finds the model a client names.
 * @throws ServiceError model_not_found with the message that Ollama clients look for; also for names that are invalid
 * here, such as one with an owner, since to the client that is a model it has to pull
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
