import type { WebGpuClasses } from "./webgpu-classes.ts";

/** GPUBufferUsage.UNIFORM | COPY_DST: such a buffer changes by what the host writes and copies, by no shader. */
const PARAMETERS_USAGE = 0x40 | 0x08;

/** llama.cpp's buffer of parameters has 128 bytes for each program of a submission. */
const LARGEST_BUFFER = 1024 * 1024;

interface Parameters {
  /** What is in the buffer when all that was asked for is done. WebGPU promises that a new one is all zeros. */
  readonly bytes: Uint8Array;
  /** The part that Dawn has not been given yet; empty when `from` is not below `to`. */
  from: number;
  to: number;
}

/**
 * Writes the parameters of all programs of a submission in one call. llama.cpp writes those of each program by
 * themselves, and each call into Dawn takes 9 µs. No program can see the difference: none runs before it is submitted.
 */
export function gatherParameters({ GPUDevice, GPUQueue, GPUCommandEncoder, GPUBuffer }: WebGpuClasses): void {
  const gathered = new WeakMap<object, Parameters>();
  /** Buffers with parameters that Dawn has not been given, and the queue that is to write them. */
  const unwritten = new Map<object, object>();

  const { createBuffer } = GPUDevice.prototype;
  GPUDevice.prototype.createBuffer = function (this: object, descriptor) {
    const buffer: object = Reflect.apply(createBuffer, this, [descriptor]);
    const { usage, size, mappedAtCreation } = descriptor;
    if (usage === PARAMETERS_USAGE && size <= LARGEST_BUFFER && !mappedAtCreation) {
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
      // What is beyond the end is for Dawn to refuse.
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

  // What else could change such a buffer; llama.cpp does none of it. From then on, Dawn is given each write as it comes.
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
