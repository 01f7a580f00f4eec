import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import { MAX_TIMER_MS } from "../../async/timers.ts";
import type { TextPatch, WorkerHost } from "../core/worker-patches.ts";
import { openCommandStream } from "./calls/command-stream.ts";
import { openGraphRecordings } from "./calls/graph-recordings.ts";
import { openParallelPrograms } from "./calls/parallel-programs.ts";
import { openWeightUploads } from "./calls/weight-uploads.ts";

/** GPUBufferUsage.STORAGE | UNIFORM: buffers that programs read and write. */
const PROGRAM_BUFFER_USAGE = 0xc0;

/**
 * Recorded graphs: one for each number of decoding slots, and those of the steps of a prompt of some thousand tokens.
 * Each takes 1 MB of the heap for a model of 28 blocks, and a bind group for each program once it is replayed.
 */
const MAX_RECORDINGS = 12;

/** Expression that is true during a warm-up request, whose GPU programs are compiled but not run. */
const IS_REHEARSAL = `getHeapU8()[${MEMORY_CELLS.gpuRehearsal}] === 1`;

/** Returns the patches for engines with our kernels on a GPU. @param replays see {@link commandStreamPatches} */
export function gpuKernelPatches(replays: boolean): Pick<WorkerHost, "modulePatches" | "workerPatches"> {
  return {
    modulePatches: [...weightUploadPatches(), ...commandStreamPatches(replays)],
    workerPatches: [...UPLOADED_READ_PATCHES, ...COMPILED_PROGRAMS_PATCHES],
  };
}

/** Patches wllama's part of the worker's script for {@link commandStreamPatches}. */
const COMPILED_PROGRAMS_PATCHES: readonly TextPatch[] = [
  {
    purpose: "compile what a rehearsed request needs, and have it before the next one runs",
    find: "// copy data to wasm heap",
    replace: `await daybreakPrograms.rehearse(${IS_REHEARSAL});
    // copy data to wasm heap`,
  },
  {
    purpose: "have all programs compiled when a model has been loaded",
    find: "// length of output buffer is written at the first 4 bytes of input buffer",
    replace: `await daybreakPrograms.rehearse(${IS_REHEARSAL});
    // length of output buffer is written at the first 4 bytes of input buffer`,
  },
];

/**
 * Patches llama.cpp's script to encode the stream of programs that our kernels write, instead of making several calls
 * for each program, and to replay recorded graphs.
 * @param replays false: every graph is encoded each time
 */
export function commandStreamPatches(replays: boolean): readonly TextPatch[] {
  const maxRecordings = replays ? MAX_RECORDINGS : 0;
  const cells = {
    stream: MEMORY_CELLS.gpuStream,
    words: MEMORY_CELLS.gpuStreamWords,
    pass: MEMORY_CELLS.gpuPass,
  };
  const ask = "function _wgpuInstanceHasWGSLLanguageFeature(instance,featureEnumValue){";
  return [
    {
      purpose: "know the device that programs run on",
      find: "var device=WebGPU.getJsObject(devicePtr);var ptr=_emwgpuCreateCommandEncoder(0n);",
      replace:
        "var device=WebGPU.getJsObject(devicePtr);daybreakStream.use(device);var ptr=_emwgpuCreateCommandEncoder(0n);",
    },
    {
      purpose: "encode programs at the end of their pass",
      find: "var pass=WebGPU.getJsObject(passPtr);pass.end()",
      replace: "var pass=WebGPU.getJsObject(passPtr);daybreakStream.end(passPtr);pass.end()",
    },
    {
      purpose: "forget what was known of handles when a buffer is made",
      find: "buffer=device.createBuffer(desc)",
      replace: `if(desc.usage&${PROGRAM_BUFFER_USAGE})daybreakStream.forget();buffer=device.createBuffer(desc)`,
    },
    {
      purpose: "forget it when a buffer is destroyed",
      find: "buffer.destroy()",
      replace: `if(buffer.usage&${PROGRAM_BUFFER_USAGE})daybreakStream.forget();buffer.destroy()`,
    },
    {
      purpose: "forget it when a program is compiled",
      find: "WebGPU.Internals.jsObjectInsert(ptr,device.createComputePipeline(desc))",
      replace:
        "daybreakStream.forget();WebGPU.Internals.jsObjectInsert(ptr,daybreakPrograms.compile(device,desc))",
    },
    ...[
      ["runs it", "var pipeline=WebGPU.getJsObject(pipelinePtr);pass.setPipeline(pipeline)"],
      [
        "asks for its layout",
        "var pipeline=WebGPU.getJsObject(pipelinePtr);var ptr=_emwgpuCreateBindGroupLayout",
      ],
    ].map(([what, find = ""]) => ({
      purpose: `have a program compiled when llama.cpp ${what} itself`,
      find,
      replace: find.replace("WebGPU.getJsObject", "daybreakPrograms.ready"),
    })),
    ...[
      ["a write", "queue.writeBuffer(buffer,bufferOffset"],
      ["a copy", "commandEncoder.copyBufferToBuffer(src"],
      ["a program of its own", "pass.setPipeline(pipeline)"],
      ["a wait", "return Asyncify.handleAsync(async()=>{var promises=["],
    ].map(([what, find = ""]) => ({
      purpose: `record no graph with ${what}`,
      find,
      replace: `daybreakStream.unexpected();${find}`,
    })),
    // The last patch, so that the others search llama.cpp's script alone.
    {
      purpose: "answer the kernels that describe programs",
      find: ask,
      replace: `var daybreakPrograms=globalThis.daybreakPrograms=(${openParallelPrograms.toString()})(WebGPU.Internals.jsObjects);var daybreakStream=(${openCommandStream.toString()})({cells:${JSON.stringify(cells)},maxRecordings:${maxRecordings},openRecordings:${openGraphRecordings.toString()},words:()=>(growMemViews(),HEAPU32),begin:daybreakPrograms.begin,isCompiling:daybreakPrograms.areCompiling,pass:WebGPU.getJsObject,pipeline:WebGPU.getJsObject,buffer:WebGPU.getJsObject});${ask}if(!instance)return daybreakStream.ask(featureEnumValue);`,
    },
  ];
}

/** Longest time that llama.cpp waits for a GPU, in milliseconds. */
const STOCK_WAIT_MS = 30_000;

/**
 * Patches llama.cpp's script so that an engine waits for its GPU as long as the daemon waits for the engine. During the
 * first step the driver compiles shaders, which may exceed llama.cpp's own limit.
 * @param maxWaitMs longest wait in milliseconds; Infinity: weeks
 */
export function queueWaitPatches(maxWaitMs: number): readonly TextPatch[] {
  return [
    {
      purpose: "keep the timer of a wait",
      find: "var promises=[];if(timeoutMSPtr){",
      replace: "var promises=[],timer;if(timeoutMSPtr){",
    },
    {
      purpose: "wait for the GPU as long as the daemon does",
      find: "new Promise(resolve=>setTimeout(resolve,timeoutMS,0))",
      replace: `new Promise(resolve=>{timer=setTimeout(resolve,timeoutMS===${STOCK_WAIT_MS}?${Math.min(maxWaitMs, MAX_TIMER_MS)}:timeoutMS)})`,
    },
    {
      // Each token has two waits, whose timers would otherwise pile up.
      purpose: "clear the timer after the wait",
      find: "const firstResolvedFuture=await Promise.race(promises);",
      replace: "const firstResolvedFuture=await Promise.race(promises);clearTimeout(timer);",
    },
  ];
}

/** Patches wllama's part of the worker's script for {@link weightUploadPatches}. */
const UPLOADED_READ_PATCHES: readonly TextPatch[] = [
  {
    purpose: "copy only what the GPU has not been given into the heap",
    find: "getHeapU8().set(bytes, out_ptr);",
    replace: `const uploaded = await daybreakUploads.send(bytes, out_ptr);
  getHeapU8().set(bytes.subarray(uploaded), out_ptr + uploaded);`,
  },
];

/** Patches llama.cpp's script to upload weights to a GPU while the file is read, without a copy in the heap. */
function weightUploadPatches(): readonly TextPatch[] {
  const { gpuUploads, uploadFrom, uploadedBytes } = MEMORY_CELLS;
  const cells = JSON.stringify({ gpuUploads, uploadFrom, uploadedBytes });
  const write = "var subarray=(growMemViews(),HEAPU8).subarray(data,data+size);";
  const create = "var device=WebGPU.getJsObject(devicePtr);var buffer;";
  const begin = "function _wgpuQueueWriteBuffer(";
  return [
    {
      purpose: "note where a tensor goes that has not been read",
      find: write,
      replace: `if(daybreakUploads.note(queue,buffer,bufferOffset,data,size))return;${write}`,
    },
    {
      purpose: "say that what is read can be given to the GPU",
      find: create,
      replace: `daybreakUploads.begin();${create}`,
    },
    {
      purpose: "give the GPU what is read",
      find: begin,
      replace: `var daybreakUploads=globalThis.daybreakUploads=(${openWeightUploads.toString()})({cells:${cells},words:()=>(growMemViews(),HEAPU32)});${begin}`,
    },
  ];
}
