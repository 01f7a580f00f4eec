// Uploads a tensor from its file to a GPU: the engine's script uploads it in chunks while it reads them, without a copy of
// the complete tensor in the heap (src/engine/gpu/calls/weight-uploads.ts).
#pragma once
#include "tensor.h"

#define GPU_UPLOADS (*(uint32_t *)GPU_UPLOADS_CELL)
#define UPLOAD_FROM (*(uint8_t **)UPLOAD_FROM_CELL)
#define UPLOADED_BYTES (*(uint64_t *)UPLOADED_BYTES_CELL)

// Smaller reads come from the package's read-ahead buffer.
enum { LEAST_UPLOAD = 1 << 20 };

extern void read_file(void *file, uint8_t *to, uint64_t bytes);
extern void set_tensor(tensor *t, const uint8_t *from, uint64_t offset, uint64_t bytes);

// Reads a tensor into the loader's buffer and sets it, or uploads it directly.
void kernel_stage_tensor(void *file, uint8_t *data, uint64_t bytes, tensor *t) {
  uint64_t done = 0;
  if (GPU_UPLOADS && bytes >= LEAST_UPLOAD) {
    UPLOAD_FROM = data, UPLOADED_BYTES = 0;
    // Writes nothing yet: the script records the destination.
    set_tensor(t, data, 0, bytes);
    read_file(file, data, bytes);
    done = UPLOADED_BYTES;
    UPLOAD_FROM = 0;
  } else {
    read_file(file, data, bytes);
  }
  if (done < bytes) set_tensor(t, data + done, done, bytes - done);
}
