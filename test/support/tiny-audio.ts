import { bool, f32, type GgufFile, type GgufTensor, string, u32 } from "./gguf-writer.ts";

/** Whisper's encoder hears 30 seconds at a time: 1500 positions after its convolutions. */
const POSITIONS = 1500;
const WEIGHT_DEVIATION = 0.05;

export interface AudioProjectorOptions {
  /** Embedding length of the text model. */
  readonly textEmbedding?: number;
}

/** An audio projector of Qwen2-Audio's shape: Whisper's encoder, its positions averaged in pairs, and a linear layer. */
export function tinyAudioProjector({ textEmbedding = 64 }: AudioProjectorOptions = {}): GgufFile {
  const [width, feedForward, mels] = [32, 48, 80];
  const tensors: GgufTensor[] = [
    weight("a.conv1d.1.weight", [3, mels, width], "F16"),
    weight("a.conv1d.1.bias", [1, width]),
    weight("a.conv1d.2.weight", [3, width, width], "F16"),
    weight("a.conv1d.2.bias", [1, width]),
    weight("a.position_embd.weight", [width, POSITIONS]),
    weight("a.post_ln.weight", [width]),
    weight("a.post_ln.bias", [width]),
    weight("mm.a.fc.weight", [width, textEmbedding]),
    weight("mm.a.fc.bias", [textEmbedding]),
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
      "clip.audio.projection_dim": u32(textEmbedding),
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
