import { bool, f32, type GgufFile, type GgufTensor, string, u32 } from "./gguf-writer.ts";

/** Whisper's encoder hears 30 seconds at a time: 1500 positions after its convolutions. */
const POSITIONS = 1500;
const WEIGHT_DEVIATION = 0.05;
/** Embedding length of the text model. */
const TEXT_EMBEDDING = 64;

/** An audio projector of Qwen2-Audio's shape: Whisper's encoder, its positions averaged in pairs, and a linear layer. */
export function tinyAudioProjector(): GgufFile {
  const [width, feedForward, mels] = [32, 48, 80];
  const tensors: GgufTensor[] = [
    weight("a.conv1d.1.weight", [3, mels, width], "F16"),
    weight("a.conv1d.1.bias", [1, width]),
    weight("a.conv1d.2.weight", [3, width, width], "F16"),
    weight("a.conv1d.2.bias", [1, width]),
    weight("a.position_embd.weight", [width, POSITIONS]),
    weight("a.post_ln.weight", [width]),
    weight("a.post_ln.bias", [width]),
    weight("mm.a.fc.weight", [width, TEXT_EMBEDDING]),
    weight("mm.a.fc.bias", [TEXT_EMBEDDING]),
    weight("a.blk.0.ffn_up.weight", [width, feedForward]),
    weight("a.blk.0.ffn_up.bias", [feedForward]),
    weight("a.blk.0.ffn_down.weight", [feedForward, width]),
    weight("a.blk.0.ffn_down.bias", [width]),
  ];
  for (const part of ["q", "k", "v", "out"])
    tensors.push(weight(`a.blk.0.attn_${part}.weight`, [width, width]));
  // Whisper's keys have no bias.
  for (const part of ["q", "v", "out"]) tensors.push(weight(`a.blk.0.attn_${part}.bias`, [width]));
  for (const part of ["ln1", "ln2"])
    tensors.push(weight(`a.blk.0.${part}.weight`, [width]), weight(`a.blk.0.${part}.bias`, [width]));
  return {
    tensors,
    metadata: {
      "general.architecture": string("clip"),
      "general.type": string("mmproj"),
      "clip.has_audio_encoder": bool(true),
      "clip.projector_type": string("qwen2a"),
      "clip.use_gelu": bool(true),
      "clip.audio.num_mel_bins": u32(mels),
      "clip.audio.embedding_length": u32(width),
      "clip.audio.feed_forward_length": u32(feedForward),
      "clip.audio.projection_dim": u32(TEXT_EMBEDDING),
      "clip.audio.block_count": u32(1),
      "clip.audio.attention.head_count": u32(2),
      "clip.audio.attention.layer_norm_epsilon": f32(1e-5),
    },
  };
}

function weight(name: string, shape: number[], type: "F32" | "F16" = "F32"): GgufTensor {
  return { name, shape, type, data: { random: WEIGHT_DEVIATION } };
}

/** A tone of 440 Hz as a WAV file of 16 bits. */
export function tinyWav(seconds: number, rate = 16_000, channels = 1): Uint8Array<ArrayBuffer> {
  const frames = Math.round(seconds * rate);
  const bytes = new Uint8Array(44 + frames * channels * 2);
  const view = new DataView(bytes.buffer);
  const text = (at: number, value: string): void => bytes.set(new TextEncoder().encode(value), at);
  text(0, "RIFF");
  view.setUint32(4, bytes.length - 8, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, channels, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * channels * 2, true);
  view.setUint16(32, channels * 2, true);
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, frames * channels * 2, true);
  for (let frame = 0; frame < frames; frame += 1) {
    const value = Math.round(Math.sin((2 * Math.PI * 440 * frame) / rate) * 8000);
    for (let channel = 0; channel < channels; channel += 1)
      view.setInt16(44 + (frame * channels + channel) * 2, value, true);
  }
  return bytes;
}

/** A frame of MPEG 1 layer III, 128 kbit/s and 44,100 Hz, whose side information is all zero: silence. */
const MP3_HEADER = [0xff, 0xfb, 0x90, 0xc0];
const MP3_FRAME_BYTES = 417;
export const MP3_FRAME_SECONDS = 1152 / 44_100;

/** Silence as an MP3 file. */
export function tinyMp3(frames: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(frames * MP3_FRAME_BYTES);
  for (let frame = 0; frame < frames; frame += 1) bytes.set(MP3_HEADER, frame * MP3_FRAME_BYTES);
  return bytes;
}

const FLAC_BLOCK = 4096;

/**
 * Silence of 16 bits and 16,000 Hz as a FLAC file of constant subframes (RFC 9639).
 * @param claimed samples that the file says it has
 */
export function tinyFlac(frames: number, claimed = frames * FLAC_BLOCK): Uint8Array<ArrayBuffer> {
  const info = new Uint8Array(34);
  const view = new DataView(info.buffer);
  view.setUint16(0, FLAC_BLOCK);
  view.setUint16(2, FLAC_BLOCK);
  // Rate in 20 bits, channels less one in 3, bits less one in 5, samples in 36.
  view.setUint32(10, (16_000 << 12) | (0 << 9) | (15 << 4) | Math.floor(claimed / 2 ** 32));
  view.setUint32(14, claimed % 2 ** 32);
  const parts = [...new TextEncoder().encode("fLaC")];
  parts.push(0x80, 0, 0, info.length, ...info);
  for (let frame = 0; frame < frames; frame += 1) {
    // Fixed blocks of 4096 samples, 16 kHz, mono, 16 bits, and the number of the frame.
    const head = [0xff, 0xf8, 0xc5, 0x08, frame];
    const body = [...head, crc(head, 8, 0x07), 0x00, 0, 0];
    const sum = crc(body, 16, 0x8005);
    parts.push(...body, sum >>> 8, sum & 255);
  }
  return Uint8Array.from(parts);
}

function crc(bytes: readonly number[], bits: number, polynomial: number): number {
  const top = 1 << (bits - 1);
  let sum = 0;
  for (const byte of bytes) {
    sum ^= byte << (bits - 8);
    for (let bit = 0; bit < 8; bit += 1) sum = sum & top ? (sum << 1) ^ polynomial : sum << 1;
    sum &= 2 ** bits - 1;
  }
  return sum;
}
