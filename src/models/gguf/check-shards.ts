import { claimed, InvalidGguf } from "./invalid-gguf.ts";
import type { GgufHeader } from "./read-header.ts";

/**
 * Refuses files that are not the shards of one model, all of them and in order, as llama.cpp would: by the keys that its
 * gguf-split writes.
 * @throws InvalidGguf
 */
export function checkShards(headers: readonly [GgufHeader, ...GgufHeader[]]): void {
  const [{ metadata }] = headers;
  const count = metadata.get("split.count") ?? 1;
  if (headers.length === 1) {
    if (typeof count !== "number" || count <= 1) return;
    throw new InvalidGguf(
      `it is one of ${claimed(count)} shards, and is not named so that the others can be found`,
    );
  }
  if (count !== headers.length) {
    throw new InvalidGguf(
      `by its name it is one of ${headers.length} shards, and its header says something else`,
    );
  }
  for (const [index, header] of headers.entries()) {
    if (header.metadata.get("split.no") === index) continue;
    throw new InvalidGguf(`what is named shard ${index + 1} of ${headers.length} is not that shard`);
  }
  const tensors = headers.reduce((sum, header) => sum + header.tensors.count, 0);
  if (metadata.get("split.tensors.count") !== tensors) {
    throw new InvalidGguf(
      `its shards have ${tensors} tensors together, and its header says something else: one of them is missing a part, or is of another model`,
    );
  }
}
