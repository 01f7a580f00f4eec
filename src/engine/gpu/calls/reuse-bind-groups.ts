import type { BindGroupDescriptor, WebGpuClasses } from "./webgpu-classes.ts";

/**
 * Most bind groups that are kept. A step of a model with 80 layers makes about 1,800, the same ones for each token
 * but for a few that grow with the context. When there are more, all are dropped and the next steps make theirs anew.
 */
const MOST_KEPT = 8192;

/**
 * Makes a bind group once. llama.cpp describes the same ones for every token, and Dawn takes 40 µs to read each
 * description: more than a GPU takes to compute with it. The same for the layouts that they are made with.
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
      if (groups.size >= MOST_KEPT) groups.clear();
      groups.set(key, (group = Reflect.apply(createBindGroup, this, [descriptor])));
    }
    return group;
  };
}

/** Equal for bind groups that are equal; undefined for one that holds other things than buffers. */
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
