import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import type { TextPatch } from "../core/worker-patches.ts";
import { openWeightUploads } from "./calls/weight-uploads.ts";

/** Patches wllama's part of the worker's script for {@link weightUploadPatches}. */
export const UPLOADED_READ_PATCHES: readonly TextPatch[] = [
  {
    purpose: "copy only what the GPU has not been given into the heap",
    find: "getHeapU8().set(bytes, out_ptr);",
    replace: `const uploaded = await daybreakUploads.send(bytes, out_ptr);
  getHeapU8().set(bytes.subarray(uploaded), out_ptr + uploaded);`,
  },
];

/** Patches llama.cpp's script to give a GPU weights as they are read of a file, in place of a copy in the heap. */
export function weightUploadPatches(): readonly TextPatch[] {
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
