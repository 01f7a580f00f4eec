// Dawn for an engine whose host cost is measured: its null backend, which executes nothing. Notes the processor time of
// the engine's thread at each read of results, and counts calls where that is wanted. Loaded in the engine's worker.
import { createRequire } from "node:module";
import { getEnvironmentData } from "node:worker_threads";

const { realDawn, memory, counts } = getEnvironmentData("daybreak-host-cost");
// The engine's worker requires this module, which therefore cannot wait for an import.
const dawn = createRequire(import.meta.url)(realDawn);
export const { globals } = dawn;

/** In the order of host-cost-process.ts: how many reads there were, and behind the counts and what is being compiled the time of each. */
const [READS, CALLS, PROGRAMS, SUBMISSIONS, IMPORTS, COMPILING, FIRST_TIME] = [0, 1, 2, 3, 4, 5, 6];
const figures = new Float64Array(memory);

function before({ prototype }, name, act) {
  const plain = prototype[name];
  prototype[name] = function (...args) {
    act();
    return plain.apply(this, args);
  };
}

if (counts) {
  const { GPUBuffer, GPUCommandEncoder, GPUComputePassEncoder, GPUComputePipeline, GPUDevice, GPUQueue } =
    globals;
  const count = (number) => () => {
    figures[number] += 1;
  };
  for (const owner of [
    GPUBuffer,
    GPUCommandEncoder,
    GPUComputePassEncoder,
    GPUComputePipeline,
    GPUDevice,
    GPUQueue,
  ]) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(owner.prototype))) {
      if (name !== "constructor" && typeof value === "function") before(owner, name, count(CALLS));
    }
  }
  before(GPUComputePassEncoder, "dispatchWorkgroups", count(PROGRAMS));
  before(GPUQueue, "submit", count(SUBMISSIONS));
  const { instantiate } = WebAssembly;
  WebAssembly.instantiate = (module, imports) => {
    const env = { ...imports.env };
    for (const [name, call] of Object.entries(env)) {
      if (typeof call !== "function" || !name.includes("wgpu")) continue;
      env[name] = (...args) => {
        figures[IMPORTS] += 1;
        return call(...args);
      };
    }
    return instantiate(module, { ...imports, env });
  };
}

// Of a fused program the code is checked, and then it is compiled.
for (const name of ["popErrorScope", "createComputePipelineAsync"]) {
  const { prototype } = globals.GPUDevice;
  const plain = prototype[name];
  prototype[name] = async function (...args) {
    figures[COMPILING] += 1;
    try {
      return await plain.apply(this, args);
    } finally {
      // Counted later than the callbacks that wait for it.
      setImmediate(() => (figures[COMPILING] -= 1));
    }
  };
}

// Each step ends with one read of its results.
before(globals.GPUBuffer, "mapAsync", () => {
  const { user, system } = process.threadCpuUsage();
  figures[FIRST_TIME + (figures[READS] % (figures.length - FIRST_TIME))] = (user + system) / 1000;
  figures[READS] += 1;
});

/** The null backend's subgroups have any size from 4 to 128, with which llama.cpp has no flash attention; most GPUs have 32. */
const SUBGROUPS = {
  subgroupMinSize: 32,
  subgroupMaxSize: 32,
  isFallbackAdapter: false,
  subgroupMatrixConfigs: [],
};

export function create(flags) {
  const gpu = dawn.create(flags);
  const requestAdapter = gpu.requestAdapter.bind(gpu);
  gpu.requestAdapter = async (options) => {
    const adapter = await requestAdapter(options);
    if (!adapter) return adapter;
    const { vendor, architecture, device, description } = adapter.info;
    const info = { vendor, architecture, device, description, ...SUBGROUPS };
    Object.defineProperty(adapter, "info", { value: info });
    const requestDevice = adapter.requestDevice.bind(adapter);
    adapter.requestDevice = async (descriptor) =>
      Object.defineProperty(await requestDevice(descriptor), "adapterInfo", { value: info });
    return adapter;
  };
  return gpu;
}
