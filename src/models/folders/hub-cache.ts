import type { FolderContents, FoundModel } from "./found-model.ts";
import { listCachedModels } from "../hub/cache/list-cached-models.ts";
import { fileName } from "./plain-folder.ts";

/** Reads the cache of the Hugging Face hub, which transformers, llama.cpp and others share. */
export async function readHubCache(folder: string): Promise<FolderContents> {
  const models = (await listCachedModels(folder)).map(
    ({ spec, repo, files, projector }): FoundModel | undefined => {
      const [first, ...others] = files;
      if (first === undefined) return undefined;
      const wish = fileName(first, repo.split("/").at(-1) ?? repo);
      return {
        name: spec,
        wish,
        files: [first, ...others],
        projector,
        adapters: [],
        settings: [],
        notes: [],
      };
    },
  );
  return { models: models.filter((model) => model !== undefined), leftOut: [] };
}
