// Parts of ggml's structures that the kernels read, as laid out by llama.cpp for wasm64.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "formats.h"
#include "llama-cpp-build.h"

enum tensor_type {
  TYPE_F32 = 0,
  TYPE_F16 = 1,
  TYPE_I32 = 26,
  TYPE_I64 = 27,
  TYPE_BF16 = 30,
};

enum { MOST_SOURCES = 10 };

typedef struct {
  uint8_t unused[112];
  int32_t usage; // 1: holds weights
} backend_buffer;

enum { FLAG_COMPUTE = 1 << 4 };
// Our flags, in bits that ggml does not use: the weights are repacked, or must never be.
enum { FLAG_REPACKED = 1 << 28, FLAG_LEFT = 1 << 29 };

typedef struct tensor {
  int32_t type;
  const backend_buffer *buffer;
  int64_t ne[4];  // elements in each dimension, innermost first
  uint64_t nb[4]; // bytes from one element to the next in each dimension
  int32_t op;
  int32_t op_params[16];
  int32_t flags;
  struct tensor *src[MOST_SOURCES];
  struct tensor *view_src;
  uint64_t view_offs;
  uint8_t *data;
} tensor;

_Static_assert(offsetof(tensor, buffer) == 8, "ggml_tensor.buffer");
_Static_assert(offsetof(tensor, op) == 80, "ggml_tensor.op");
_Static_assert(offsetof(tensor, flags) == 148, "ggml_tensor.flags");
_Static_assert(offsetof(tensor, ne) == 16, "ggml_tensor.ne");
_Static_assert(offsetof(tensor, nb) == 48, "ggml_tensor.nb");
_Static_assert(offsetof(tensor, src) == 152, "ggml_tensor.src");
_Static_assert(offsetof(tensor, data) == 248, "ggml_tensor.data");

typedef struct {
  int32_t size;
  int32_t n_nodes;
  int32_t n_leafs;
  tensor **nodes;
  void *unused[3];
  const int32_t *use_counts; // by place in the table of tensors
  struct { uint64_t places; uint32_t *used; tensor **keys; } uses;
} graph;

_Static_assert(offsetof(graph, nodes) == 16, "ggml_cgraph.nodes");
_Static_assert(offsetof(graph, use_counts) == 48, "ggml_cgraph.use_counts");
_Static_assert(offsetof(graph, uses.keys) == 72, "ggml_cgraph.visited_hash_set.keys");

typedef struct {
  int32_t ith; // this thread
  int32_t nth; // of so many
  uint64_t work_size;
  uint8_t *work; // shared by the threads of one operator
  void *threadpool;
  uint8_t use_reference; // take llama.cpp's plain implementation
} compute_params;

_Static_assert(offsetof(compute_params, threadpool) == 24, "ggml_compute_params.threadpool");
_Static_assert(offsetof(compute_params, use_reference) == 32, "ggml_compute_params.use_ref");
