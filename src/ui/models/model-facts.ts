import type { ListedModel } from "../daemon-api.ts";

/** What a model can do, in words. */
const ABILITIES: Readonly<Record<string, string>> = {
  vision: "sees images",
  tools: "calls tools",
  thinking: "thinks",
  json: "JSON",
};

/** What models that do not answer are for. */
const PURPOSES: Readonly<Record<string, string>> = {
  embed: "Turns texts into vectors for search. It does not chat.",
  rerank: "Orders documents by a question. It does not chat.",
};

export function abilitiesOf({ capabilities = {}, purpose }: ListedModel): string[] {
  const able = Object.entries(capabilities).flatMap(([name, can]) =>
    can === true ? [ABILITIES[name] ?? name] : [],
  );
  if (purpose === "embed") return ["embeddings", ...able];
  return purpose === "rerank" ? ["reranking", ...able] : able;
}

/** Undefined for models that chat. */
export function purposeOf({ purpose = "generate" }: ListedModel): string | undefined {
  return PURPOSES[purpose];
}

export function canChat({ purpose = "generate" }: ListedModel): boolean {
  return purpose === "generate";
}

export function originOf({ source, from }: ListedModel): string {
  if (source === "shipped")
    return from === undefined ? "ships with Daybreak" : `ships with Daybreak, made of ${from}`;
  if (source === "modelfile") return `made of ${from ?? "another model"} by a Modelfile`;
  if (source === "hub") return `from the hub${from === undefined ? "" : `: ${from}`}`;
  return "a file of yours";
}

/** What deleting a model does. */
export function deletionOf({ alias, source }: ListedModel, size: string): string {
  switch (source) {
    case "hub":
      return `Its files are deleted from the disk of the daemon's machine, which frees up to ${size}. To have it again, it has to be downloaded again.`;
    case "modelfile":
      return "Its Modelfile is deleted. The model that it is made of stays, with its files.";
    case "shipped":
      return "It ships with Daybreak, so its files stay. It is only taken off the list, and comes back when it is loaded or pulled by its name, or when the daemon starts again.";
    default:
      return `${alias} is only taken off the list. The file is yours, and stays where it is.`;
  }
}
