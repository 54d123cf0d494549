#!/usr/bin/env python3
"""Makes tests/golden/qwen35-vision: a tiny random Qwen 3.5 that sees, and what transformers makes of two pictures.

    python3 tools/golden/qwen_vision.py

The folder is as those of vision.py: a Hugging Face directory with its tower, the tower as mmproj.gguf (tensors and keys
of llama.cpp's converter), image-1.png and image-2.png of sizes that nothing resamples, rows.f32 (what takes the place of
the images' tokens), tokens.txt, logits.f32, hidden.f32 (text, image 1, text) and the same with -2 (both images); of
float64 weights and activations. It writes pictures itself, and cuts them into patches as Qwen2VLImageProcessor does.
"""
import pathlib
import shutil
import struct
import zlib

import gguf
import numpy as np
import torch
import transformers
from safetensors.torch import save_file

import weights

HERE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "qwen35-vision"
NAME, PATCH, MERGE, ROW, BEGIN, END = "qwen35-vision", 4, 2, 95, 93, 94
SIZES = ((40, 56), (32, 16))     # 5 x 7 and 4 x 2 rows
TEXT = dict(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=4, num_attention_heads=2,
            num_key_value_heads=1, head_dim=32, max_position_embeddings=512, rms_norm_eps=1e-6, pad_token_id=0,
            bos_token_id=1, eos_token_id=2, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8,
            linear_value_head_dim=8, linear_conv_kernel_dim=4, tie_word_embeddings=True, rope_parameters={
                "rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.5, "mrope_section": [3, 3, 2]})
VISION = dict(depth=2, hidden_size=32, intermediate_size=48, num_heads=2, patch_size=PATCH, spatial_merge_size=MERGE,
              temporal_patch_size=2, out_hidden_size=32, num_position_embeddings=36)
LIMITS = {"shortest_edge": 64, "longest_edge": 70 * 64}


def picture(seed, height, width):
    rng = np.random.Generator(np.random.PCG64([seed, height, width]))
    y, x = np.mgrid[:height, :width]
    waves = [128 + 90 * np.sin(rng.uniform(-0.3, 0.3) * x + rng.uniform(-0.3, 0.3) * y + rng.uniform(0, 6.3))
             for _ in range(3)]
    return np.clip(np.stack(waves, -1) + rng.integers(-20, 20, (height, width, 3)), 0, 255).astype(np.uint8)


def save_png(path, rgb):
    height, width, _ = rgb.shape

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    lines = b"".join(b"\0" + line.tobytes() for line in rgb)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
                     + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b""))


def patches(rgb):
    """[patches][channel, frame, y, x], square by square of MERGE x MERGE; both frames are the picture"""
    height, width, _ = rgb.shape
    x = (rgb.astype(np.float32) / 255 - 0.5) / 0.5
    x = x.reshape(height // PATCH // MERGE, MERGE, PATCH, width // PATCH // MERGE, MERGE, PATCH, 3)
    x = x.transpose(0, 3, 1, 4, 6, 2, 5)     # squares, patches of one, channel, y, x
    x = np.repeat(x[:, :, :, :, :, None], 2, axis=5)
    return torch.from_numpy(x.reshape(-1, 3 * 2 * PATCH * PATCH).astype(np.float64))


def clip_name(name):
    own = name.removeprefix("model.visual.")
    for ours, theirs in (("merger.norm", "v.post_ln"), ("merger.linear_fc1", "mm.0"), ("merger.linear_fc2", "mm.2"),
                         ("patch_embed.proj", "v.patch_embd"), ("pos_embed", "v.position_embd"), ("blocks", "v.blk"),
                         ("norm1", "ln1"), ("norm2", "ln2"), ("attn.qkv", "attn_qkv"), ("attn.proj", "attn_out"),
                         ("mlp.linear_fc1", "ffn_up"), ("mlp.linear_fc2", "ffn_down")):
        own = own.replace(ours, theirs)
    return own


def save_mmproj(path, tensors):
    w = gguf.GGUFWriter(path, "clip")
    w.add_type("mmproj")
    w.add_name(NAME)
    w.add_clip_has_vision_encoder(True)
    w.add_clip_projector_type("qwen3vl_merger")
    w.add_vision_use_gelu(True)
    w.add_vision_projection_dim(VISION["out_hidden_size"])
    w.add_vision_image_size(int(VISION["num_position_embeddings"] ** 0.5) * PATCH)
    w.add_vision_patch_size(PATCH)
    w.add_vision_embedding_length(VISION["hidden_size"])
    w.add_vision_feed_forward_length(VISION["intermediate_size"])
    w.add_vision_block_count(VISION["depth"])
    w.add_vision_head_count(VISION["num_heads"])
    w.add_vision_spatial_merge_size(MERGE)
    w.add_vision_attention_layernorm_eps(1e-6)
    w.add_vision_image_mean([0.5] * 3)
    w.add_vision_image_std([0.5] * 3)
    w.add_uint32("clip.vision.image_min_pixels", LIMITS["shortest_edge"])
    w.add_uint32("clip.vision.image_max_pixels", LIMITS["longest_edge"])
    for hf, tensor in tensors.items():
        array, name = tensor.float().numpy(), clip_name(hf)
        if name == "v.patch_embd.weight":
            w.add_tensor(name, np.ascontiguousarray(array[:, :, 0]))
            w.add_tensor(name + ".1", np.ascontiguousarray(array[:, :, 1]))
        elif array.ndim == 1 or name.startswith("v.position"):
            w.add_tensor(name, array)
        else:
            kind = gguf.GGMLQuantizationType.BF16
            w.add_tensor(name, gguf.quants.quantize(array, kind), raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    transformers.logging.set_verbosity_error()
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir(parents=True)
    config = transformers.Qwen3_5Config(text_config=TEXT, vision_config=VISION, image_token_id=ROW,
                                        vision_start_token_id=BEGIN, vision_end_token_id=END, video_token_id=92,
                                        tie_word_embeddings=True)
    config.architectures, config.dtype = ["Qwen3_5ForConditionalGeneration"], torch.bfloat16
    config.save_pretrained(HERE)
    (HERE / "preprocessor_config.json").write_text(
        '{"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "merge_size": 2, "patch_size": 4,\n'
        f' "size": {{"longest_edge": {LIMITS["longest_edge"]}, "shortest_edge": {LIMITS["shortest_edge"]}}}}}\n')
    model = transformers.Qwen3_5ForConditionalGeneration(config)
    tensors = {n: torch.from_numpy(weights.dense(NAME, n, tuple(t.shape))).to(torch.bfloat16)
               for n, t in model.state_dict().items() if n != "lm_head.weight"}
    save_file(tensors, HERE / "model.safetensors", metadata={"format": "pt"})
    save_mmproj(HERE / "mmproj.gguf", {n: t for n, t in tensors.items() if ".visual." in n})
    model = transformers.Qwen3_5ForConditionalGeneration.from_pretrained(HERE, dtype=torch.float64,
                                                                         attn_implementation="eager").eval()
    pictures = [picture(i, *size) for i, size in enumerate(SIZES)]
    for i, rgb in enumerate(pictures):
        save_png(HERE / f"image-{i + 1}.png", rgb)
    pixels = [patches(rgb) for rgb in pictures]
    grids = torch.tensor([[1, h // PATCH, w // PATCH] for h, w in SIZES])
    own = pixels[0].reshape(-1, 3, 2, PATCH * PATCH)[:, :, 0]
    own.numpy().astype("<f4").tofile(HERE / "pixels.f32")
    with torch.no_grad():
        rows = model.get_image_features(torch.cat(pixels), grids).pooler_output
    rows = [r for r in rows]
    torch.cat(rows).numpy().astype("<f4").tofile(HERE / "rows.f32")
    rng = np.random.Generator(np.random.PCG64(7))

    def text(n):
        return [int(i) for i in rng.integers(3, 92, n)]

    def image(i):
        return [BEGIN] + [ROW] * len(rows[i]) + [END]
    seen = []
    model.model.language_model.norm.register_forward_hook(lambda module, args, out: seen.append(out[0]))
    for end, n, ids in (("", 1, text(13) + image(0) + text(17)),
                        ("-2", 2, text(4) + image(0) + text(6) + image(1) + text(19))):
        tensor = torch.tensor([ids])
        with torch.no_grad():
            out = model(input_ids=tensor, pixel_values=torch.cat(pixels[:n]), image_grid_thw=grids[:n],
                        mm_token_type_ids=(tensor == ROW).int(), use_cache=False)
        (HERE / f"tokens{end}.txt").write_text(",".join(map(str, ids)) + "\n")
        out.logits[0].numpy().astype("<f4").tofile(HERE / f"logits{end}.f32")
        seen.pop().numpy().astype("<f4").tofile(HERE / f"hidden{end}.f32")
        print(f"{len(ids)} tokens, logits {float(out.logits.min()):.1f} .. {float(out.logits.max()):.1f}")
    for f in HERE.iterdir():
        f.chmod(0o644)


if __name__ == "__main__":
    main()
