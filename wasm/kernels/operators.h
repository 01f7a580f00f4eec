// Operators that our kernels compute. The others run in llama.cpp's function for graphs, into which the compiler has inlined
// nearly all operators: V8 takes long to optimize it, and it runs slowly until then. So all operators of common graphs are
// here, and V8 never compiles that function.
#pragma once
#include "choices.h"
#include "elementwise.h"
#include "flash-attention.h"
#include "get-rows.h"
#include "normalize.h"
#include "repack-graph.h"
#include "set-rows.h"

extern void compute_dup(const compute_params *params, tensor *out);
extern void compute_rope(const compute_params *params, tensor *out, int32_t forward);

// Computes this thread's part of a node; returns false, on all threads alike, to leave the node to llama.cpp.
int32_t kernel_operator(const compute_params *params, tensor *out) {
  if (out->op == OP_GET_ROWS && out->src[0]->flags & FLAG_REPACKED) {
    look_rows_up(params, out, out->src[0], out->src[1]);
    return 1;
  }
  if (out->op == OP_MUL_MAT_ID && (out->src[0]->flags & FLAG_REPACKED || !params->use_reference) && experts_fit(out)) {
    return mul_mat_id(params, out);
  }
  if (params->use_reference) return 0;
  switch (out->op) {
  case OP_ADD:
  case OP_SUB:
  case OP_MUL:
  case OP_DIV:
    if (!combination_fits(out)) return 0;
    combine_tensors(params, out);
    return 1;
  case OP_NORM:
  case OP_RMS_NORM:
    if (!norm_fits(out)) return 0;
    normalize(params, out, 0);
    return 1;
  case OP_SCALE:
    if (!has_float_rows(out) || !has_float_rows(out->src[0])) return 0;
    scale_tensor(params, out);
    return 1;
  case OP_UNARY:
  case OP_GLU:
    if (!activation_fits(out)) return 0;
    activate_tensor(params, out);
    return 1;
  case OP_ADD_ID:
    if (!biases_fit(out)) return 0;
    add_chosen(params, out);
    return 1;
  case OP_SUM_ROWS:
    if (!sums_fit(out)) return 0;
    sum_rows(params, out);
    return 1;
  case OP_CLAMP:
    if (!bounds_fit(out)) return 0;
    clamp(params, out);
    return 1;
  case OP_ARGSORT:
    if (!sort_fits(out)) return 0;
    sort_places(params, out);
    return 1;
  case OP_GET_ROWS: return get_rows(params, out);
  case OP_SET_ROWS:
    if (!set_rows_fits(out)) return 0;
    set_rows(params, out);
    return 1;
  case OP_SOFT_MAX:
    if (!softmax_fits(out)) return 0;
    soft_max(params, out);
    return 1;
  case OP_FLASH_ATTN_EXT:
    if (!attention_fits(params, out)) return 0;
    flash_attention(params, out);
    return 1;
  case OP_DUP:
  case OP_CPY:
  case OP_CONT: compute_dup(params, out); return 1;
  case OP_ROPE:
    if (out->src[0]->type != TYPE_F32) return 0;
    compute_rope(params, out, 1);
    return 1;
  default: return 0;
  }
}
