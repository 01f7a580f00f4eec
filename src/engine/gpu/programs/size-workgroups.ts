/** Part of WebGPU's classes, as Dawn exports them, that takes the code of programs. */
export interface ProgramClasses {
  readonly GPUDevice: {
    readonly prototype: {
      readonly adapterInfo?: { readonly isFallbackAdapter?: boolean };
      createShaderModule: (descriptor: ShaderModuleDescriptor) => object;
    };
  };
}

export interface ShaderModuleDescriptor {
  readonly label?: string;
  readonly code: string;
}

/**
 * Sets the number of threads of some programs of llama.cpp to the number that has work. Results stay the same, except that
 * sums are added in another order. A page's worker gets this function as text: it must not refer to anything outside of it.
 */
export function sizeWorkgroups({ GPUDevice }: ProgramClasses): void {
  /**
   * Threads of a workgroup that multiplies a matrix by a vector, on an adapter that computes on the CPU. llama.cpp uses
   * 256, of which those without a block of the row are idle; a GPU hides that, but a CPU executes each of them. At least
   * the 16 threads that share a block.
   */
  const softwareThreads = 32;

  /** Reduces the threads of a product of a matrix and a vector; returns other programs unchanged. */
  function sizeVectorProduct(code: string): string {
    const threads = /@workgroup_size\((\d+)\)/.exec(code)?.[1];
    if (threads === undefined || !code.includes("fn accumulate_vec_dot(")) return code;
    // Weights per block may be the same number, so it is replaced only where it means threads.
    const places = new RegExp(
      [
        String.raw`(?<=@workgroup_size\()${threads}(?=\))`,
        String.raw`(?<=(?:block \+= |num_block_groups: u32 = ))${threads}(?= ?/ ?\d+[;)])`,
        String.raw`(?<=; ?(?:k|i|col) \+= )${threads}(?=\))`,
        String.raw`(?<=array<f32, \d+ \* )${threads}(?=>)`,
        String.raw`(?<=row \* )${threads}(?= \+ thread)`,
        String.raw`(?<=stride(?:: ?u32)? = )${threads}(?= / 2u)`,
      ].join("|"),
      "g",
    );
    return code.replace(places, String(softwareThreads));
  }

  /**
   * Gives the program that scans the mask before flash attention one thread per scanned position. llama.cpp starts as many
   * as the GPU allows, and then one of them reads the results of all.
   */
  // oxlint-disable-next-line unicorn/consistent-function-scoping -- the text of the outer function goes alone
  function sizeMaskScan(code: string): string {
    if (!code.includes("var<workgroup> wg_any:")) return code;
    const [, positions, threads] = /k_rel < (\d+); k_rel \+= (\d+)\)/.exec(code) ?? [];
    if (positions === undefined || threads === undefined || Number(positions) >= Number(threads)) return code;
    return code.replace(new RegExp(String.raw`\b${threads}\b`, "g"), positions);
  }

  const { createShaderModule } = GPUDevice.prototype;
  GPUDevice.prototype.createShaderModule = function (this: ProgramClasses["GPUDevice"]["prototype"], given) {
    const isSoftware = this.adapterInfo?.isFallbackAdapter === true;
    const code = sizeMaskScan(isSoftware ? sizeVectorProduct(given.code) : given.code);
    return Reflect.apply(createShaderModule, this, [code === given.code ? given : { ...given, code }]);
  };
}
