/** The library that names without an owner are in; clients may spell it out. */
const LIBRARY = /^(?:registry\.ollama\.ai\/)?library\//;
/** How clients write a repository of the hub. */
const HUB_ADDRESS = /^(?:hf\.co|huggingface\.co)\//i;
const LATEST = ":latest";

/** The daemon's name for what a client calls a model: `hf.co/owner/repo:Q4_0` is `hf:owner/repo:Q4_0`. */
export function toModelName(name: string): string {
  const plain = name.replace(LIBRARY, "");
  if (!HUB_ADDRESS.test(plain)) return plain;
  const spec = plain.replace(HUB_ADDRESS, "hf:");
  return spec.endsWith(LATEST) ? spec.slice(0, -LATEST.length) : spec;
}

/** A model's name in lists, where every name has a tag. */
export function toListedName(alias: string): string {
  return alias.includes(":") ? alias : alias + LATEST;
}
