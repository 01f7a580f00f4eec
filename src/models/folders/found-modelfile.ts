/** Where the files of a model are. */
interface Files {
  /** The first shard. */
  readonly model: string;
  readonly projector: string | undefined;
  readonly adapters: readonly string[];
}

/** The Modelfile of a model that was found, with the lines of its settings. */
export function modelfileOf({ model, projector, adapters }: Files, settings: readonly string[]): string {
  const lines = [
    `FROM ${model}`,
    ...adapters.map((adapter) => `ADAPTER ${adapter}`),
    ...(projector === undefined ? [] : [`VISION_PROJECTOR ${projector}`]),
    ...settings,
  ];
  return `${lines.join("\n")}\n`;
}
