import type { FusedPart } from "./fused-program.ts";
import { type BufferEntry, isSame, overlap, type Step } from "./fusible.ts";

interface SharedBindings {
  readonly parts: readonly FusedPart[];
  readonly entries: readonly BufferEntry[];
  /** Number of storage buffers. */
  readonly storage: number;
}

/**
 * Bindings of a program that has all of the parts: WebGPU does not allow a range to be bound twice for writing, so what two parts
 * bind alike is bound once. Undefined where it cannot be.
 */
export function shareBindings(steps: readonly Step[]): SharedBindings | undefined {
  const entries: { readonly entry: BufferEntry; readonly type: string; readonly isStorage: boolean }[] = [];
  const parts: FusedPart[] = [];
  for (const { fusible, entries: own } of steps) {
    const slots = new Map<number, number>();
    const vectors = new Set<number>();
    for (const { binding, space, type } of fusible.program.bindings) {
      const entry = own.find((each) => each.binding === binding);
      if (!entry) return undefined;
      const isStorage = space.startsWith("storage");
      const same = isStorage ? entries.findIndex((each) => each.isStorage && isSame(each.entry, entry)) : -1;
      if (same >= 0) {
        const isRead = !fusible.writes.includes(binding);
        if (isRead && type === "array<vec4<f32>>" && entries[same]?.type === "array<f32>")
          vectors.add(binding);
        else if (entries[same]?.type !== type) return undefined;
        slots.set(binding, same);
        continue;
      }
      if (isStorage && entries.some((each) => each.isStorage && overlap(each.entry, entry))) return undefined;
      slots.set(binding, entries.length);
      entries.push({ entry, type, isStorage });
    }
    parts.push({ program: fusible.program, slots, vectors, rows: fusible.rows });
  }
  return {
    parts,
    entries: entries.map(({ entry: { resource } }, binding) => ({ binding, resource })),
    storage: entries.filter(({ isStorage }) => isStorage).length,
  };
}
