import type { ListedModel } from "../daemon-api.ts";

/** Labels of capabilities. */
const CAPABILITY_LABELS: Readonly<Record<string, string>> = {
  vision: "sees images",
  tools: "calls tools",
  thinking: "thinks",
  json: "JSON",
};

/** Explanations of models that do not generate text. */
const PURPOSE_NOTES: Readonly<Record<string, string>> = {
  embed: "Turns texts into vectors for search. It does not chat.",
  rerank: "Orders documents by a question. It does not chat.",
};

export function capabilityLabels({ capabilities = {}, purpose }: ListedModel): string[] {
  const able = Object.entries(capabilities).flatMap(([name, can]) =>
    can === true ? [CAPABILITY_LABELS[name] ?? name] : [],
  );
  if (purpose === "embed") return ["embeddings", ...able];
  return purpose === "rerank" ? ["reranking", ...able] : able;
}

/** Explains models that do not generate text; undefined for others. */
export function purposeNote({ purpose = "generate" }: ListedModel): string | undefined {
  return PURPOSE_NOTES[purpose];
}

export function canChat({ purpose = "generate" }: ListedModel): boolean {
  return purpose === "generate";
}

export function describeOrigin({ source, from }: ListedModel): string {
  if (source === "shipped")
    return from === undefined ? "ships with Daybreak" : `ships with Daybreak, made of ${from}`;
  if (source === "modelfile") return `made of ${from ?? "another model"} by a Modelfile`;
  if (source === "hub") return `from the hub${from === undefined ? "" : `: ${from}`}`;
  return "a file of yours";
}

/** Explains the effect of deleting a model. */
export function describeDeletion({ alias, source }: ListedModel, size: string): string {
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
