// How a tensor gets from its file to a GPU: the engine's script hands over what it reads in pieces, in place of a copy of the
// whole tensor in the heap (src/engine/gpu/calls/weight-uploads.ts).
#pragma once
#include "tensor.h"

#define GPU_UPLOADS (*(uint32_t *)GPU_UPLOADS_CELL)
#define UPLOAD_FROM (*(uint8_t **)UPLOAD_FROM_CELL)
#define UPLOADED_BYTES (*(uint64_t *)UPLOADED_BYTES_CELL)

// Smaller reads come from what the package has read ahead.
enum { LEAST_UPLOAD = 1 << 20 };

extern void read_file(void *file, uint8_t *to, uint64_t bytes);
extern void set_tensor(tensor *t, const uint8_t *from, uint64_t offset, uint64_t bytes);

// A tensor is to be read into memory of the loader's own, and then set.
void kernel_stage_tensor(void *file, uint8_t *data, uint64_t bytes, tensor *t) {
  uint64_t done = 0;
  if (GPU_UPLOADS && bytes >= LEAST_UPLOAD) {
    UPLOAD_FROM = data, UPLOADED_BYTES = 0;
    // Nothing is written for the GPU yet: the script notes where it would be.
    set_tensor(t, data, 0, bytes);
    read_file(file, data, bytes);
    done = UPLOADED_BYTES;
    UPLOAD_FROM = 0;
  } else {
    read_file(file, data, bytes);
  }
  if (done < bytes) set_tensor(t, data + done, done, bytes - done);
}
