// The one file that the kernels' host reads, fetched before anybody asks for it.
const kernels = new Uint8Array(await (await fetch("/wasm/kernels.o")).arrayBuffer());

export function readFileSync(url) {
  if (!String(url).endsWith("/wasm/kernels.o")) throw new Error(`a page cannot read ${url}`);
  return kernels;
}
