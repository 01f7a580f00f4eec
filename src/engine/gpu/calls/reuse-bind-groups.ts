import type { BindGroupDescriptor, WebGpuClasses } from "./webgpu-classes.ts";

/**
 * Most bind groups in the cache, several times what a step of a large model uses. When it is full, all are dropped and
 * the next steps create theirs again.
 */
const MAX_CACHED = 8192;

/**
 * Caches bind groups and their layouts. llama.cpp describes the same ones for every token, and Dawn may take longer to
 * read a description than the GPU takes to compute with it.
 */
export function reuseBindGroups({ GPUDevice, GPUComputePipeline }: WebGpuClasses): void {
  const numbers = new WeakMap<object, number>();
  let lastNumber = 0;
  const numberOf = (thing: object): number => {
    let number = numbers.get(thing);
    if (number === undefined) numbers.set(thing, (number = ++lastNumber));
    return number;
  };

  const layouts = new WeakMap<object, Map<number, object>>();
  const { getBindGroupLayout } = GPUComputePipeline.prototype;
  GPUComputePipeline.prototype.getBindGroupLayout = function (this: object, index) {
    let own = layouts.get(this);
    if (!own) layouts.set(this, (own = new Map()));
    let layout = own.get(index);
    if (!layout) own.set(index, (layout = Reflect.apply(getBindGroupLayout, this, [index])));
    return layout;
  };

  const groups = new Map<string, object>();
  const { createBindGroup } = GPUDevice.prototype;
  GPUDevice.prototype.createBindGroup = function (this: object, descriptor) {
    const key = keyOf(descriptor, numberOf);
    if (key === undefined) return Reflect.apply(createBindGroup, this, [descriptor]);
    let group = groups.get(key);
    if (!group) {
      if (groups.size >= MAX_CACHED) groups.clear();
      groups.set(key, (group = Reflect.apply(createBindGroup, this, [descriptor])));
    }
    return group;
  };
}

/** Cache key of a bind group; undefined when it holds anything other than buffers. */
function keyOf(
  { layout, entries }: BindGroupDescriptor,
  numberOf: (thing: object) => number,
): string | undefined {
  let key = `${numberOf(layout)}`;
  for (const { binding, resource } of entries) {
    if (!resource.buffer) return undefined;
    key += ` ${binding}:${numberOf(resource.buffer)},${resource.offset},${resource.size}`;
  }
  return key;
}
