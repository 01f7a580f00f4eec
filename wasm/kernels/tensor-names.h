// Formats names of tensors while a graph is built, such as "Qcur-7" and "Qcur-7 (reshaped)".
#pragma once
#include "tensor.h"

enum { NAME_AT = 256, NAME_BYTES = 64 }; // ggml_tensor.name

typedef struct { char *to, *end; } name_writer;

extern tensor *original_format_name(tensor *t, const char *format, const uint8_t *arguments);

INLINE void write_letter(name_writer *name, char letter) {
  if (name->to < name->end) *name->to++ = letter;
}

static void write_number(name_writer *name, int32_t number) {
  char digits[10];
  int32_t count = 0;
  uint32_t rest = number < 0 ? 0u - (uint32_t)number : (uint32_t)number;
  do digits[count++] = (char)('0' + rest % 10);
  while (rest /= 10);
  if (number < 0) write_letter(name, '-');
  while (count > 0) write_letter(name, digits[--count]);
}

// ggml_format_name. Formats other than texts and numbers are left to llama.cpp.
tensor *kernel_format_name(tensor *t, const char *format, const uint8_t *arguments) {
  char *const begin = (char *)t + NAME_AT;
  name_writer name = { begin, begin + NAME_BYTES - 1 };
  const uint8_t *next = arguments;
  for (const char *at = format; *at; at++) {
    if (*at != '%') {
      write_letter(&name, *at);
      continue;
    }
    at++;
    if (*at == 'd') {
      write_number(&name, *(const int32_t *)next);
      next += sizeof(int32_t);
    } else if (*at == 's') {
      next = (const uint8_t *)(((uint64_t)next + 7) & ~7ull);
      const char *text = *(const char *const *)next;
      next += sizeof text;
      if (!text) return original_format_name(t, format, arguments);
      for (; *text; text++) write_letter(&name, *text);
    } else {
      return original_format_name(t, format, arguments);
    }
  }
  *name.to = 0;
  return t;
}
