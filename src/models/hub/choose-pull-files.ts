import { ServiceError } from "../../errors/service-error.ts";
import { chooseModelFiles, chooseProjector } from "../names/choose-file.ts";
import type { HubSpec } from "../names/hub-spec.ts";
import type { HubPullRequest, RepoFile, RepoListing } from "./hub-store.ts";

/** The files that a pull downloads. */
interface PullFiles {
  /** All shards in order. */
  readonly model: readonly RepoFile[];
  readonly projector: RepoFile | undefined;
}

/** @throws ServiceError hub_repo_not_found for a named file that is not there, no_gguf_in_repo */
export function choosePullFiles(
  { repo, files }: RepoListing,
  { spec, projector }: HubPullRequest,
): PullFiles {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const paths = [...byPath.keys()];
  const chosen = chooseModelFiles(paths, spec);
  if (chosen === undefined) throw noFittingFile(repo, spec);
  const projectorPath = projector === "auto" ? chooseProjector(paths, chosen[0]!) : projector;
  const projectorFile = projectorPath === undefined ? undefined : byPath.get(projectorPath);
  if (projector !== undefined && projector !== "auto" && projectorFile === undefined)
    throw new ServiceError("hub_repo_not_found", `${repo} has no projector file ${projector}.`);
  return { model: chosen.map((path) => byPath.get(path)!), projector: projectorFile };
}

function noFittingFile(repo: string, { file, quant }: HubSpec): ServiceError {
  if (file !== undefined) return new ServiceError("hub_repo_not_found", `${repo} has no file ${file}.`);
  return new ServiceError(
    "no_gguf_in_repo",
    quant === undefined
      ? `${repo} has no GGUF model; look for a repository whose name ends in -GGUF.`
      : `${repo} has no GGUF model with quantization ${quant}.`,
  );
}
