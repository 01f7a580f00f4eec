import type { WebGpuClasses } from "./webgpu-classes.ts";

/** GPUBufferUsage.UNIFORM | COPY_DST: only the host changes such a buffer, never a shader. */
const PARAMETERS_USAGE = 0x40 | 0x08;

/** Far more than llama.cpp's buffer for the parameters of one submission. */
const MAX_BUFFER_BYTES = 1024 * 1024;

interface Parameters {
  /** Content of the buffer after all pending writes. WebGPU zeroes new buffers. */
  readonly bytes: Uint8Array;
  /** The part that has not been passed to Dawn yet; empty when `from` is not below `to`. */
  from: number;
  to: number;
}

/**
 * Writes the parameters of all programs of a submission in one call. llama.cpp writes those of each program separately,
 * and each call into Dawn is expensive. Programs cannot see the difference: they run only after they are submitted.
 */
export function gatherParameters({ GPUDevice, GPUQueue, GPUCommandEncoder, GPUBuffer }: WebGpuClasses): void {
  const gathered = new WeakMap<object, Parameters>();
  /** Buffers with parameters that have not been passed to Dawn, and the queue that will write them. */
  const unwritten = new Map<object, object>();

  const { createBuffer } = GPUDevice.prototype;
  GPUDevice.prototype.createBuffer = function (this: object, descriptor) {
    const buffer: object = Reflect.apply(createBuffer, this, [descriptor]);
    const { usage, size, mappedAtCreation } = descriptor;
    if (usage === PARAMETERS_USAGE && size <= MAX_BUFFER_BYTES && !mappedAtCreation) {
      gathered.set(buffer, { bytes: new Uint8Array(size), from: size, to: 0 });
    }
    return buffer;
  };

  const { writeBuffer, submit } = GPUQueue.prototype;
  const write = (): void => {
    for (const [buffer, queue] of unwritten) {
      const parameters = gathered.get(buffer);
      if (!parameters) continue;
      const { bytes, from, to } = parameters;
      Reflect.apply(writeBuffer, queue, [buffer, from, bytes, from, to - from]);
      parameters.from = bytes.length;
      parameters.to = 0;
    }
    unwritten.clear();
  };
  GPUQueue.prototype.writeBuffer = function (this: object, buffer, at, data, offset, size) {
    const parameters = gathered.get(buffer);
    if (!parameters || at + size > parameters.bytes.length) {
      // Dawn rejects writes beyond the end.
      Reflect.apply(writeBuffer, this, [buffer, at, data, offset, size]);
      return;
    }
    parameters.bytes.set(data.subarray(offset, offset + size), at);
    parameters.from = Math.min(parameters.from, at);
    parameters.to = Math.max(parameters.to, at + size);
    unwritten.set(buffer, this);
  };
  GPUQueue.prototype.submit = function (this: object, commands) {
    write();
    Reflect.apply(submit, this, [commands]);
  };

  // Other ways to change such a buffer, which llama.cpp does not use. After one, writes go directly to Dawn.
  const leaveToDawn = (thing: unknown): void => {
    if (typeof thing !== "object" || thing === null || !gathered.has(thing)) return;
    write();
    gathered.delete(thing);
  };
  const { copyBufferToBuffer, clearBuffer } = GPUCommandEncoder.prototype;
  GPUCommandEncoder.prototype.copyBufferToBuffer = function (this: object, ...args) {
    for (const arg of args) leaveToDawn(arg);
    Reflect.apply(copyBufferToBuffer, this, args);
  };
  GPUCommandEncoder.prototype.clearBuffer = function (this: object, buffer, ...range) {
    leaveToDawn(buffer);
    Reflect.apply(clearBuffer, this, [buffer, ...range]);
  };
  const { destroy } = GPUBuffer.prototype;
  GPUBuffer.prototype.destroy = function (this: object) {
    gathered.delete(this);
    unwritten.delete(this);
    Reflect.apply(destroy, this, []);
  };
}
