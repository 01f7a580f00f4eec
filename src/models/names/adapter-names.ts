import path from "node:path";
import { isPlainPart } from "./name-rules.ts";

/** Where a file's name gives none. */
const UNNAMED = "adapter";

/** An adapter with the name that its Modelfile gives it, if it does. */
interface NamedFile {
  readonly file: { readonly path: string };
  readonly name?: string | undefined;
}

/**
 * Gives every adapter of a model a name of its own: the one that it has, or that of its file. With a number, if another one
 * is called so; those that have a name come first.
 */
export function nameAdapters<Adapter extends NamedFile>(
  adapters: readonly Adapter[],
): (Omit<Adapter, "name"> & { readonly name: string })[] {
  const names = new Map<Adapter, string>();
  const taken = new Set<string>();
  const give = (adapter: Adapter, wished: string): void => {
    let name = wished;
    for (let number = 2; taken.has(name); number++) name = `${wished}-${number}`;
    taken.add(name);
    names.set(adapter, name);
  };
  for (const adapter of adapters) if (adapter.name !== undefined) give(adapter, adapter.name);
  for (const adapter of adapters) if (adapter.name === undefined) give(adapter, fileName(adapter.file.path));
  return adapters.map((adapter) => ({ ...adapter, name: names.get(adapter) ?? UNNAMED }));
}

function fileName(file: string): string {
  const plain = path
    .basename(file)
    .replace(/\.gguf$/i, "")
    .replaceAll(/[^\w.-]+/g, "-");
  return isPlainPart(plain) ? plain : UNNAMED;
}
