/** The part of WebGPU's classes, as Dawn exports them, that reads programs. */
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
  /** WGSL. */
  readonly code: string;
}

/**
 * Gives programs of llama.cpp the number of threads that they have work for. What they compute stays the same, except
 * that sums are added in another order; so a page does it as well. Its text is put into the script of a page's worker, where
 * nothing around it exists.
 */
export function sizeWorkgroups({ GPUDevice }: ProgramClasses): void {
  /**
   * Threads of a workgroup that multiplies a matrix by a vector, on an adapter that computes on the CPU. llama.cpp takes
   * 256, of which those without a block of the row idle; a GPU hides that, a processor computes each of them. Not below
   * the 16 threads that share a block.
   */
  const softwareThreads = 32;

  /** The product of a matrix and a vector with fewer threads; another program as it is. */
  function sizeVectorProduct(code: string): string {
    const threads = /@workgroup_size\((\d+)\)/.exec(code)?.[1];
    if (threads === undefined || !code.includes("fn accumulate_vec_dot(")) return code;
    // The number is also that of weights in a block, so it is replaced only where it means threads.
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
   * The program that looks at the mask before flash attention, with one thread for each position that it looks at. llama.cpp
   * starts as many as the GPU allows, and then one of them reads what all the others have left.
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
