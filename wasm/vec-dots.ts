/**
 * llama.cpp's dot products of one row and one column, which it calls where our operators do not reach: for matrices
 * whose rows are not a multiple of four, and for flash attention over a quantised cache.
 */
export const VEC_DOTS = [
  {
    kernel: "kernel_vec_dot_q4_0",
    index: 7104,
    name: "ggml_vec_dot_q4_0_q8_0",
    sha256: "3392d10cef41397bceb2a81fb4814a14398b97210da1fa741fa8808521c63063",
  },
  {
    kernel: "kernel_vec_dot_q4_1",
    index: 7103,
    name: "ggml_vec_dot_q4_1_q8_1",
    sha256: "c3d1e8e2ca9157805ace4d1cb47328e502dec5901e695929ce24e016870f53bf",
  },
  {
    kernel: "kernel_vec_dot_q5_0",
    index: 7101,
    name: "ggml_vec_dot_q5_0_q8_0",
    sha256: "9f79a2e7c03f07aebe021b86dcfc9795506c27434131c8706848bfe681b4a84d",
  },
  {
    kernel: "kernel_vec_dot_q5_1",
    index: 7100,
    name: "ggml_vec_dot_q5_1_q8_1",
    sha256: "00122a24896da4a18669dc672c288ea4f5c02bb3f49decd557daeb21ae25a2fc",
  },
  {
    kernel: "kernel_vec_dot_mxfp4",
    index: 7110,
    name: "ggml_vec_dot_mxfp4_q8_0",
    sha256: "c0b1e44d6d581251fd2993ab66343c55a34ee991f97fa62fe5f2fc79e610c5f1",
  },
  {
    kernel: "kernel_vec_dot_q8_0",
    index: 7097,
    name: "ggml_vec_dot_q8_0_q8_0",
    sha256: "e035ea2e30ebd86868532946c8615dcb7c1360d958a5b9a0b240c26542d6365d",
  },
  {
    kernel: "kernel_vec_dot_iq4_nl",
    index: 7112,
    name: "ggml_vec_dot_iq4_nl_q8_0",
    sha256: "1b5a942d2816b55fb1cfff88fe58bf5c6d2e1f6a617f7de9f552930141425786",
  },
  {
    kernel: "kernel_vec_dot_q2_K",
    index: 7106,
    name: "ggml_vec_dot_q2_K_q8_K",
    sha256: "9290814c072a7cd25d4fabd281de8ef764c56b4de6a4e97ae06148598cadce2e",
  },
  {
    kernel: "kernel_vec_dot_q3_K",
    index: 7105,
    name: "ggml_vec_dot_q3_K_q8_K",
    sha256: "f09d113fa21539c4945f3b311168403cac2f6e5dc897c5498e69e43e969711f8",
  },
  {
    kernel: "kernel_vec_dot_q4_K",
    index: 7102,
    name: "ggml_vec_dot_q4_K_q8_K",
    sha256: "23d56e95fd74cbe0982c39c7980e98c811ef4bce7dd87816c403277ec28728e1",
  },
  {
    kernel: "kernel_vec_dot_q5_K",
    index: 7099,
    name: "ggml_vec_dot_q5_K_q8_K",
    sha256: "aabb9e64a42022f0bc210635227eacdfd6d85d6fe210ad9d3e3a4e047aefd8d3",
  },
  {
    kernel: "kernel_vec_dot_q6_K",
    index: 7098,
    name: "ggml_vec_dot_q6_K_q8_K",
    sha256: "68b0a5e81705de1a5e08a7f0c1fcfca223c818e5017eca9504583eea4646e01c",
  },
  {
    kernel: "kernel_vec_dot_iq4_xs",
    index: 7111,
    name: "ggml_vec_dot_iq4_xs_q8_K",
    sha256: "e3e395743917fcfd47a66f3fd324cd690e1624881df248a369238e2a71a522f7",
  },
] as const;
