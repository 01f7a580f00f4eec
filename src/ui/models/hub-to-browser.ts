import { chooseModelFiles, chooseProjector } from "../../models/names/choose-file.ts";
import { HUB_PREFIX, parseHubSpec } from "../../models/names/hub-spec.ts";
import { hubPaths } from "../../tab/store/hub-files.ts";
import type { StoredModel, StoreOptions } from "../../tab/store/model-store.ts";
import { exportedHub } from "../page-kind.ts";
import { pageStore } from "../page-store.ts";

/**
 * Stores a model of the hub in this browser, with its projector if it has one.
 * @param spec hf:owner/repository[:file.gguf or quantization][@revision]; "hf:" may be left out
 * @throws ServiceError with a message for people
 */
export async function storeFromHub(spec: string, options: StoreOptions): Promise<StoredModel> {
  const text = spec.startsWith(HUB_PREFIX) ? spec : `${HUB_PREFIX}${spec}`;
  const { owner, repo, revision, ...choice } = parseHubSpec(text);
  const name = `${owner}/${repo}`;
  const hub = {
    ...options,
    ...(revision !== undefined && { revision }),
    ...(exportedHub !== undefined && { hub: exportedHub }),
  };
  const paths = await hubPaths(name, hub);
  const [file] = chooseModelFiles(paths, choice) ?? [];
  if (file === undefined) {
    throw new Error(
      `The repository ${name} has no GGUF model${(choice.quant ?? choice.file) ? " of that name or quantization" : ""}. Look at its files on the hub.`,
    );
  }
  const projector = chooseProjector(paths, file);
  return await pageStore().downloadFromHub(name, file, {
    ...hub,
    ...(projector !== undefined && { projector }),
  });
}
