// Dawn for an engine that is being profiled: it counts and times what arrives, in memory that the profiler shares.
// Loaded in the engine's worker, where only JavaScript runs as it is.
import { createRequire } from "node:module";
import { getEnvironmentData } from "node:worker_threads";

const { realDawn, memory } = getEnvironmentData("daybreak-profile");
// The engine's worker requires this module, which therefore cannot wait for an import.
const dawn = createRequire(import.meta.url)(realDawn);
export const { globals } = dawn;

/** In the order of profile-engine.ts: numbers and milliseconds, and last whether to time shaders. */
const [CALLS, CALL_MS, SUBMISSIONS, SUBMIT_MS, WAITS, WAIT_MS, READS, READ_MS, SHADER_MS, TIME_SHADERS] =
  Array.from({ length: 10 }, (_, at) => at);
const figures = new Float64Array(memory);

const { GPUBuffer, GPUCommandEncoder, GPUComputePassEncoder, GPUComputePipeline, GPUDevice, GPUQueue } =
  globals;
// GPUBufferUsage and GPUMapMode.
const [MAP_READ, COPY_SRC, COPY_DST, QUERY_RESOLVE] = [0x1, 0x4, 0x8, 0x200];
const TIMES_BYTES = 16;

function around({ prototype }, name, wrap) {
  const plain = prototype[name];
  prototype[name] = function (...args) {
    return wrap.call(this, () => plain.apply(this, args), args);
  };
}

function counted(number, ms) {
  return (call) => {
    const begin = performance.now();
    try {
      return call();
    } finally {
      figures[number] += 1;
      figures[ms] += performance.now() - begin;
    }
  };
}

function awaited(number, ms) {
  return (call) => {
    const begin = performance.now();
    figures[number] += 1;
    const end = () => {
      figures[ms] += performance.now() - begin;
    };
    const waiting = call();
    waiting.then(end, end);
    return waiting;
  };
}

for (const [owner, names] of [
  [GPUDevice, ["createBindGroup", "createBuffer", "createCommandEncoder"]],
  [GPUComputePipeline, ["getBindGroupLayout"]],
  [GPUCommandEncoder, ["beginComputePass", "copyBufferToBuffer", "finish"]],
  [GPUComputePassEncoder, ["setPipeline", "setBindGroup", "dispatchWorkgroups", "end"]],
  [GPUQueue, ["writeBuffer"]],
]) {
  for (const name of names) around(owner, name, counted(CALLS, CALL_MS));
}
around(GPUQueue, "submit", counted(SUBMISSIONS, SUBMIT_MS));
around(GPUQueue, "onSubmittedWorkDone", awaited(WAITS, WAIT_MS));
around(GPUBuffer, "mapAsync", awaited(READS, READ_MS));

// Times of shaders, as the GPU's own clock has them: each pass gets two queries, read when its work is done.
const devices = new WeakMap();
const queriesOf = new WeakMap();
const timesOf = new WeakMap();

around(GPUDevice, "createCommandEncoder", function (call) {
  const encoder = call();
  devices.set(encoder, this);
  return encoder;
});
const { beginComputePass } = GPUCommandEncoder.prototype;
GPUCommandEncoder.prototype.beginComputePass = function (descriptor = {}) {
  const device = devices.get(this);
  if (!figures[TIME_SHADERS] || !device?.features.has("timestamp-query")) {
    return beginComputePass.call(this, descriptor);
  }
  const querySet = device.createQuerySet({ type: "timestamp", count: 2 });
  queriesOf.set(this, [...(queriesOf.get(this) ?? []), querySet]);
  const timestampWrites = { querySet, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 };
  return beginComputePass.call(this, { ...descriptor, timestampWrites });
};
around(GPUCommandEncoder, "finish", function (call) {
  const device = devices.get(this);
  const times = (queriesOf.get(this) ?? []).map((querySet) => {
    const resolved = device.createBuffer({ size: TIMES_BYTES, usage: QUERY_RESOLVE | COPY_SRC });
    const readable = device.createBuffer({ size: TIMES_BYTES, usage: MAP_READ | COPY_DST });
    this.resolveQuerySet(querySet, 0, 2, resolved, 0);
    this.copyBufferToBuffer(resolved, 0, readable, 0, TIMES_BYTES);
    return readable;
  });
  const commands = call();
  timesOf.set(commands, times);
  return commands;
});
const { mapAsync } = GPUBuffer.prototype;
around(GPUQueue, "submit", function (call, [commands]) {
  call();
  for (const readable of commands.flatMap((each) => timesOf.get(each) ?? [])) {
    const add = () => {
      const [begin, end] = new BigUint64Array(readable.getMappedRange());
      figures[SHADER_MS] += Number(end - begin) / 1e6;
      readable.destroy();
    };
    mapAsync.call(readable, 1).then(add, () => {}); // a device that is lost has no times
  }
});

export function create(flags) {
  // Clocks are coarse by default, against pages that spy on each other.
  const gpu = dawn.create([...flags, "disable-dawn-features=timestamp_quantization"]);
  const requestAdapter = gpu.requestAdapter.bind(gpu);
  gpu.requestAdapter = async (options) => {
    const adapter = await requestAdapter(options);
    const requestDevice = adapter?.requestDevice.bind(adapter);
    if (adapter?.features.has("timestamp-query")) {
      adapter.requestDevice = async (descriptor) =>
        await requestDevice({
          ...descriptor,
          requiredFeatures: [...descriptor.requiredFeatures, "timestamp-query"],
        });
    }
    return adapter;
  };
  return gpu;
}
