#!/usr/bin/env python3
"""Makes the golden models that see: tiny random models with towers, pictures, and what transformers makes of them.

    python3 tools/golden/vision.py [NAME...]

vision_check.py shows what the data can catch. Each folder holds a Hugging Face directory with its tower, the tower as
mmproj.gguf (gemma3-vision: mmproj-q8_0.gguf, mmproj-q4_0.gguf and model.gguf, too, gemma4-vision: mmproj-q4_0.gguf),
and
- image-1.png, image-2.png: of the tower's own size, so that nothing resamples them
- pixels.f32: image-1.png as the tower gets it: [3, height, width], or patches row by row, [patches, size * size * 3]
- rows.f32: what takes the place of the images' tokens, image 1 first: [rows, d_model]; rows-q8_0.f32, rows-q4_0.f32:
  the same of mmproj-q8_0.gguf, mmproj-q4_0.gguf
- tokens.txt, logits.f32, hidden.f32: text, image 1, text; tokens-2.txt, logits-2.f32, hidden-2.f32: text, both images,
  text; perplexity-2.txt: its perplexity, for each context a line with the context, the scored tokens, perplexity and
  standard error; hidden-2-q8_0.f32: the same with Peridot's q8_0 cache; as in the folders of make.py
- gemma3-vision alone: crops.png, which is three times as high as wide, so that pan and scan makes three crops of it;
  tokens-crops.txt: text, crops.png and image-1.png, text, as Gemma3Processor has it; hidden-crops.f32, and
  logits-crops.f32: of the last N_LOGITS tokens
computed by transformers in float64 from the weights as stored (norms, softmax and pools in float32), with the masks
that its classes make for `generate`. The unified model's forward in 5.23.0 makes others, in which rows of an image see
each other in all layers and beyond the window: what pull request 46850 mended for Gemma 3 and 4 and not there.
"""
import argparse
import contextlib
import json
import math
import os
import pathlib
import shutil
import sys
from dataclasses import dataclass, field, replace

os.environ["ATEN_CPU_CAPABILITY"] = "avx2"   # see pictures.py

import gguf
import numpy as np
import torch
import transformers
from PIL import Image
from safetensors.torch import save_file
from transformers.modeling_outputs import BaseModelOutputWithPooling

import check
import files
import models
import tokenizer
import weights

HERE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
BEGIN, END, SOFT = -3, -2, -1       # of the special pieces, from the vocabulary's end
BUDGET = 70             # rows of an image of Gemma 4, at most; the least that its processor allows
N_LOGITS = 8


@dataclass(frozen=True)
class Model:
    text: models.Shape
    cls: str                # of transformers
    tower: dict             # vision_config
    sizes: tuple            # height and width of the two pictures
    top: dict = field(default_factory=dict)     # what config.json has beside text_config and vision_config
    proves: str = ""
    quantized: tuple = ()   # types of further files of the tower

    @property
    def is_gemma3(self):
        return self.cls.startswith("Gemma3")

    @property
    def is_unified(self):
        return "Unified" in self.cls

    def token(self, which):
        return self.text.vocab_size + which


PUBLISHED_4 = dict(hidden_activation="gelu_pytorch_tanh", rms_norm_eps=1e-6, patch_size=4, pooling_kernel_size=3,
                   position_embedding_size=48, default_output_length=BUDGET,
                   rope_parameters={"rope_theta": 100.0, "rope_type": "default"}, model_type="gemma4_vision")
SIZES_4 = ((60, 144), (108, 84))    # 5 x 12 and 9 x 7 rows: no more fit
MODELS = {
    "gemma3-vision": Model(
        models.VISION["gemma3-vision"],
        "Gemma3ForConditionalGeneration",
        dict(hidden_size=96, image_size=96, intermediate_size=104, model_type="siglip_vision_model",
             num_attention_heads=4, num_hidden_layers=2, patch_size=6, vision_use_head=False),
        ((96, 96), (96, 96)), dict(mm_tokens_per_image=16),
        "16 x 16 patches of 6 pixels, heads of 24, means of 4 x 4; window 12 and images of 16 rows", ("q8_0", "q4_0")),
    "gemma4-vision": Model(
        models.VISION["gemma4-vision"],
        "Gemma4ForConditionalGeneration",
        PUBLISHED_4 | dict(hidden_size=64, intermediate_size=96, num_attention_heads=4, num_key_value_heads=4,
                           head_dim=16, num_hidden_layers=2, use_clipped_linears=True, standardize=False),
        SIZES_4, {}, "E2B: clipped matrices, inputs of layers; rows of images are causal; two aspects", ("q4_0",)),
    "gemma4-dense-vision": Model(
        models.VISION["gemma4-dense-vision"],
        "Gemma4ForConditionalGeneration",
        PUBLISHED_4 | dict(hidden_size=96, intermediate_size=104, num_attention_heads=4, num_key_value_heads=4,
                           head_dim=24, num_hidden_layers=2, use_clipped_linears=False, standardize=True),
        SIZES_4, {}, "31B: standardised rows, heads of 24; rows of an image see each other in local layers"),
    "gemma4-unified-vision": Model(
        models.VISION["gemma4-unified-vision"],
        "Gemma4UnifiedForConditionalGeneration",
        dict(mm_embed_dim=96, mm_posemb_size=24, model_patch_size=12, model_type="gemma4_unified_vision",
             num_soft_tokens=BUDGET, output_proj_dims=96, patch_size=4, pooling_kernel_size=3, rms_norm_eps=1e-6),
        SIZES_4, {}, "12B: patches of 12 pixels without a tower; rows of an image see each other in local layers"),
}

# ---- configuration, weights ----

def text_config(m):
    s = m.text
    if m.is_gemma3:
        return files.config_wrapped(s)["text_config"] | {"vocab_size": s.vocab_size}
    g = s.gemma4
    config = files.config_unified(replace(s, gemma4={"num_global_key_value_heads": None} | g))["text_config"]
    return config | {
        "attention_k_eq_v": g.get("attention_k_eq_v", False), "model_type": f"gemma4{'_unified' * m.is_unified}_text",
        "bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0, "enable_moe_block": False,
        "hidden_size_per_layer_input": g["hidden_size_per_layer_input"],
        "num_kv_shared_layers": g.get("num_kv_shared_layers", 0),
        "use_bidirectional_attention": g.get("use_bidirectional_attention"),
        "use_double_wide_mlp": g.get("use_double_wide_mlp", False), "vocab_size_per_layer_input": s.vocab_size}


def config(m):
    """config.json as published."""
    out = {"architectures": [m.cls], "text_config": text_config(m), "vision_config": m.tower} | m.top
    if m.is_gemma3:
        return out | {
            "boi_token_index": m.token(BEGIN), "eoi_token_index": m.token(END), "image_token_index": m.token(SOFT),
            "eos_token_id": [1, 106], "initializer_range": 0.02, "model_type": "gemma3", "torch_dtype": "bfloat16",
            "transformers_version": "4.50.0.dev0"}
    return out | {
        "audio_config": None, "boi_token_id": m.token(BEGIN), "eoi_token_id": m.token(END),
        "image_token_id": m.token(SOFT), "eos_token_id": [1, 106], "vision_soft_tokens_per_image": BUDGET,
        "model_type": f"gemma4{'_unified' * m.is_unified}", "dtype": "bfloat16", "tie_word_embeddings": True,
        "transformers_version": "5.5.0"}


def image_processor(m):
    common = {"do_convert_rgb": True, "do_rescale": True, "do_resize": True, "rescale_factor": 1 / 255}
    if m.is_gemma3:
        side = m.tower["image_size"]
        return common | {
            "do_normalize": True, "do_pan_and_scan": None, "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
            "image_processor_type": "Gemma3ImageProcessor", "image_seq_length": m.top["mm_tokens_per_image"],
            "pan_and_scan_max_num_crops": None, "pan_and_scan_min_crop_size": None,
            "pan_and_scan_min_ratio_to_activate": None, "processor_class": "Gemma3Processor", "resample": 2,
            "size": {"height": side, "width": side}}
    return common | {
        "do_normalize": False, "image_mean": [0.0] * 3, "image_std": [1.0] * 3, "max_soft_tokens": BUDGET,
        "image_processor_type": f"Gemma4{'Unified' * m.is_unified}ImageProcessor", "image_seq_length": BUDGET,
        "patch_size": m.tower["patch_size"], "pooling_kernel_size": m.tower["pooling_kernel_size"], "resample": 3}


def published_name(name):
    """Of a tensor of Gemma3ForConditionalGeneration or Gemma4UnifiedForConditionalGeneration."""
    for own, theirs in (("model.embed_vision.multimodal_embedder.", "model.embed_vision."),
                        ("model.embed_vision.p", "model.vision_embedder.p")):
        if name.startswith(own):
            return theirs + name.removeprefix(own)
    return name


def tower_names(m):
    """What transformers has beside the text model: its names -> shapes."""
    with torch.device("meta"):
        model = getattr(transformers, m.cls)(own_config(m))
    return {n: tuple(t.shape) for n, t in model.state_dict().items() if not ("language_model" in n or "lm_head" in n)}


def tower_weights(m):
    """Under the names of transformers' modules."""
    return {n: torch.from_numpy(weights.tower(m.text.seed, n, shape)).to(torch.bfloat16)
            for n, shape in tower_names(m).items()}


def stored(m, tower):
    """All tensors of model.safetensors."""
    text = files.torch_weights(m.text)
    if m.is_gemma3:
        out = {"language_model." + n: w for n, w in text.items()}
        for n, w in tower.items():
            n = n.removeprefix("model.")
            out[n.replace("vision_tower.", "vision_tower.vision_model.")] = w
        return out
    out = {n.replace("model.", "model.language_model.", 1): w for n, w in text.items()}
    return out | {published_name(n) if m.is_unified else n: w for n, w in tower.items()}


def own_config(m):
    cls = getattr(transformers, m.cls.replace("ForConditionalGeneration", "Config"))
    c = cls(**json.loads(json.dumps(config(m))))
    c._attn_implementation = c.text_config._attn_implementation = c.vision_config._attn_implementation = "eager"
    return c


# ---- GGUF ----

SUFFIXES = (".weight", ".bias", ".input_min", ".input_max", ".output_min", ".output_max")
UNIFIED_NAMES = {"patch_ln1": "v.patch_norm.1", "patch_ln2": "v.patch_norm.2", "pos_norm": "v.patch_norm.3",
                 "patch_dense": "v.patch_embd", "embedding_projection": "mm.input_projection"}


def clip_name(m, hf):
    """llama.cpp's name, by way of what its converter makes of the published one."""
    if m.is_unified:
        if hf.endswith("pos_embedding"):
            return "v.position_embd.weight"
        parts = hf.split(".")
        return f"{UNIFIED_NAMES[parts[-2]]}.{parts[-1]}"
    if m.is_gemma3:
        hf = hf.removeprefix("model.").replace("vision_tower.", "vision_tower.vision_model.")
        hf = hf.replace("_weight", ".weight")
    else:
        hf = hf.replace("model.vision_tower.encoder.", "vision_model.model.").replace(".linear.weight", ".weight")
        hf += ".weight" * hf.endswith("position_embedding_table")
    return gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, m.tower["num_hidden_layers"]).get_name(hf, SUFFIXES)


def channels(m, name, array, outermost):
    """Of patches, transformers has channels innermost in Gemma 4, llama.cpp outermost."""
    if m.is_gemma3 or not name.startswith(("v.patch_embd.weight", "v.patch_norm.1")):
        return array
    shape = (-1, 3) if outermost else (3, -1)
    return array.reshape(*array.shape[:-1], *shape).swapaxes(-1, -2).reshape(array.shape)


def clip_array(m, name, array):
    if name.startswith("mm.soft_emb_norm"):
        return array + np.float32(1)        # LayerNorms are as they are
    array = channels(m, name, np.atleast_1d(array), outermost=True)
    if m.is_unified and name == "v.position_embd.weight":
        return np.ascontiguousarray(array.transpose(1, 0, 2))       # a table for x and one for y
    if name == "v.patch_embd.weight" and not m.is_unified:
        return array.reshape(len(array), 3, m.tower["patch_size"], m.tower["patch_size"])
    return array


def clip_type(m, name, array, matrices):
    """As published: vectors, patches and positions are F32, Gemma 3's projection F16, and what has no whole blocks."""
    if array.ndim == 1 or name.startswith(("v.patch_embd", "v.position_embd")):
        return gguf.GGMLQuantizationType.F32
    if m.is_gemma3 and name.startswith("mm.") or array.shape[-1] % gguf.GGML_QUANT_SIZES[matrices][0]:
        return gguf.GGMLQuantizationType.F16
    return matrices


def save_mmproj(m, tower, path, matrices):
    """Tower and projector, by the names and in the types of published files."""
    t = m.tower
    w = gguf.GGUFWriter(path, "clip")
    w.add_type("mmproj")
    w.add_name(path.parent.name)
    w.add_file_type(gguf.LlamaFileType[f"MOSTLY_{matrices.name}"])
    w.add_quantization_version(gguf.GGML_QUANT_VERSION)
    w.add_clip_has_vision_encoder(True)
    if m.is_gemma3:
        w.add_clip_projector_type("gemma3")
        w.add_vision_use_gelu(True)
    else:
        w.add_clip_vision_projector_type("gemma4uv" if m.is_unified else "gemma4v")
    w.add_vision_projection_dim(m.text.d_model)
    w.add_vision_image_size(t.get("image_size", 224))       # means nothing in Gemma 4
    w.add_vision_patch_size(t["patch_size"])
    w.add_vision_embedding_length(t["mm_embed_dim"] if m.is_unified else t["hidden_size"])
    w.add_vision_feed_forward_length(t.get("intermediate_size", 0))
    w.add_vision_block_count(t.get("num_hidden_layers", 0))
    w.add_vision_head_count(t.get("num_attention_heads", 0))
    w.add_vision_attention_layernorm_eps(1e-6)
    processor = image_processor(m)
    w.add_vision_image_mean(processor["image_mean"])
    w.add_vision_image_std(processor["image_std"])
    for hf, tensor in tower.items():
        name = clip_name(m, hf)
        array = clip_array(m, name, tensor.float().numpy())
        kind = clip_type(m, name, array, matrices)
        if kind == gguf.GGMLQuantizationType.F32:
            w.add_tensor(name, array)
        elif kind == gguf.GGMLQuantizationType.F16:
            w.add_tensor(name, array.astype(np.float16))
        else:
            w.add_tensor(name, gguf.quants.quantize(array, kind), raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def read_mmproj(m, path):
    """Dequantised, under the names of transformers' modules."""
    tensors = {t.name: t for t in gguf.GGUFReader(path).tensors}
    out = {}
    for hf, shape in tower_names(m).items():
        name = clip_name(m, hf)
        t = tensors.pop(name)
        array = gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float64)
        if m.is_unified and name == "v.position_embd.weight":
            array = array.reshape(2, -1, shape[-1]).transpose(1, 0, 2)
        array = channels(m, name, array.reshape(shape), outermost=False)
        out[hf] = torch.from_numpy(np.ascontiguousarray(array - ("mm_soft_emb_norm" in hf)))
    assert not tensors
    return out


# ---- pictures, prompts ----

def picture(seed, height, width):
    """Waves, and boxes of one colour, so that neither all patches nor all their pixels are alike."""
    rng = np.random.Generator(np.random.PCG64([seed, height, width]))
    y, x = np.mgrid[:height, :width]
    out = np.empty((height, width, 3))
    for c in range(3):
        fx, fy, phase = rng.uniform(-0.15, 0.15), rng.uniform(-0.15, 0.15), rng.uniform(0, 6.3)
        out[..., c] = 128 + 90 * np.sin(fx * x + fy * y + phase)
    for _ in range(14):
        h, w = rng.integers(3, height // 2), rng.integers(3, width // 2)
        top, left = rng.integers(0, height - h), rng.integers(0, width - w)
        out[top:top + h, left:left + w] = rng.integers(0, 256, 3)
    return np.clip(out, 0, 255).astype(np.uint8)


def pixels(m, folder):
    """The two pictures as transformers' own processor has them: a batch, and positions of patches or None."""
    own = image_processor(m)
    processor = getattr(transformers, own.pop("image_processor_type"))(**own)
    batch = processor([Image.open(folder / f"image-{i}.png") for i in (1, 2)], return_tensors="pt")
    if m.is_gemma3:
        return batch["pixel_values"], None
    return batch["pixel_values"], batch["image_position_ids"]


def patches(values, positions, i):
    """Of picture i without padding: patches row by row, with their (x, y)."""
    if positions is None:
        return values[i], None
    real = (positions[i] >= 0).all(-1)
    return values[i][real], positions[i][real]


def prompts(m, n_rows):
    """Ids of text, image, text, and of text with two images, as transformers' processors make them."""
    s = m.text
    rng = np.random.Generator(np.random.PCG64([s.seed, 1]))

    def text(n):
        return [int(i) for i in rng.integers(4, s.vocab_size - len(s.special), n)]

    def image(i):
        own = [m.token(BEGIN)] + [m.token(SOFT)] * n_rows[i] + [m.token(END)]
        line = [s.vocab_size - len(models.SPECIAL_3)] if m.is_gemma3 else []
        return line + own + line
    return [2] + text(13) + image(0) + text(17), [2] + text(4) + image(0) + text(6) + image(1) + text(19)


# ---- the oracle ----

def load(m, folder):
    cls = getattr(transformers, m.cls)
    model, info = cls.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager",
                                      output_loading_info=True)
    extra = [n for n in info["unexpected_keys"] if not models.is_unread(m.text, n.rpartition("language_model.")[2])]
    assert not extra and set(info["missing_keys"]) <= {"lm_head.weight"}, info
    return model.eval()


@torch.no_grad()
def rows_of(m, model, values, positions):
    """-> what takes the place of each picture's tokens"""
    if positions is None:
        return list(model.get_image_features(values.double()).pooler_output)
    return list(model.get_image_features(values.double(), positions).pooler_output)


def rows_of_mmproj(m, model, path, values, positions):
    """The same with the tower of a GGUF file."""
    before = {n: w.clone() for n, w in model.state_dict().items()}
    model.load_state_dict(read_mmproj(m, path), strict=False)
    rows = rows_of(m, model, values, positions)
    model.load_state_dict(before)
    return rows


def own_masks(model, n, kinds):
    return model.create_masks_for_generate(model.config, torch.empty(1, n, 0).double(), None, None, None, **kinds)


@torch.no_grad()
def run(m, model, ids, rows, mask=None):
    """-> logits and final-norm states; mask: None for transformers' own, or {kind of layer: [n, n] of bool}"""
    seen = []
    hook = model.model.language_model.norm.register_forward_hook(lambda module, args, out: seen.append(out[0]))
    tensor = torch.tensor([ids])
    kinds = {"token_type_ids" if m.is_gemma3 else "mm_token_type_ids": (tensor == m.token(SOFT)).int()}
    if mask is None:
        mask = own_masks(model, len(ids), kinds)
    else:
        mask = {k: torch.where(v, 0.0, -torch.inf).double()[None, None] for k, v in mask.items()}
    features = torch.stack(rows) if m.is_gemma3 else tuple(rows)
    out = model(input_ids=tensor, attention_mask=mask, use_cache=False,
                mm_encoder_outputs={"image": BaseModelOutputWithPooling(pooler_output=features)}, **kinds)
    hook.remove()
    return out.logits[0], seen[0]


# ---- perplexity, by the definition of `peridot perplexity --help` ----

def span(image, i):
    """-> where the image that has token i begins and ends; i and i where it is no row of one"""
    begin = end = i
    while image[i] and begin > 0 and image[begin - 1]:
        begin -= 1
    while end < len(image) and image[end]:
        end += 1
    return begin, end


def windows(image, ctx):
    """(at, from, to) over the tokens after bos; image: which of them are rows of images"""
    length, stride, to = ctx - 1, ctx // 2, 0
    while (begin := span(image, to)[1] if to < len(image) else to) < len(image):
        first, end = span(image, max(0, begin - (length - stride)))
        at = first if first + length > begin else end
        to = min(at + length, len(image))
        if image[to - 1]:
            to = span(image, to - 1)[0]
        yield at, begin, to


def perplexity_line(m, model, ids, rows, ctx):
    bos, text = ids[0], ids[1:]
    image = [i == m.token(SOFT) for i in text]
    losses = []
    for at, begin, to in windows(image, ctx):
        first = sum(image[i] and not image[i - 1] for i in range(at))
        seen = sum(image[i] and not (i > at and image[i - 1]) for i in range(at, to))
        window = [bos] + text[at:to]
        out = run(m, model, window, rows[first:first + seen])[0] if seen else plain(model, window)
        losses += [-torch.log_softmax(out, -1)[i - at][text[i]] for i in range(begin, to) if not image[i]]
    x = torch.stack(losses)
    assert len(x) == len(text) - sum(image)
    ppl = float(x.mean().exp())
    return f"{ctx} {len(x)} {ppl:.8e} {ppl * float(x.std()) / math.sqrt(len(x)):.8e}\n"


@torch.no_grad()
def plain(model, ids):
    return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]


def save_perplexities(m, model, ids, rows, folder):
    most = max(map(len, rows))
    lines = [perplexity_line(m, model, ids, rows, ctx) for ctx in (most + 2, most + 7, most * 2, 512)]
    (folder / "perplexity-2.txt").write_text("".join(lines))


@contextlib.contextmanager
def rounded_cache(model):
    """Peridot's q8_0 cache in the text model alone."""
    module = sys.modules[type(model).__module__]
    with check.patched(module, "eager_attention_forward", None) as own:
        def attend(a, *args, **kwargs):
            if "Vision" in type(a).__name__:
                return own(a, *args, **kwargs)
            return check.attention(a, *args, **kwargs | dict(round_kv=check.q8_0_cache))
        module.eager_attention_forward = attend
        yield


def boxes(seed, height, width):
    """Of one colour each, as a large file would be of no use."""
    rng = np.random.Generator(np.random.PCG64([seed, height, width]))
    out = np.full((height, width, 3), 90, np.uint8)
    for _ in range(60):
        top, left, h, w = (rng.integers(0, n) for n in (height, width, height // 6, width // 2))
        out[top:top + h, left:left + w] = rng.integers(0, 256, 3)
    return out


def save_crops(m, model, folder):
    """Pan and scan by Gemma 3's own processor."""
    names = dict(zip(("boi_token", "eoi_token", "image_token"), models.SPECIAL_3[1:]))
    processor = transformers.Gemma3Processor(
        transformers.Gemma3ImageProcessor.from_pretrained(folder),
        transformers.GemmaTokenizer.from_pretrained(folder, extra_special_tokens=names),
        image_seq_length=m.top["mm_tokens_per_image"])
    Image.fromarray(boxes(m.text.seed, 770, 256)).save(folder / "crops.png", optimize=True)
    images = [Image.open(folder / name) for name in ("crops.png", "image-1.png")]
    batch = processor(images=[images], text=["The<start_of_image>and<start_of_image>end"], do_pan_and_scan=True,
                      return_tensors="pt")
    ids, rows = batch["input_ids"][0].tolist(), rows_of(m, model, batch["pixel_values"], None)
    assert len(rows) == 5 and ids.count(m.token(SOFT)) == sum(map(len, rows))
    (folder / "tokens-crops.txt").write_text(",".join(map(str, ids)) + "\n")
    logits, hidden = run(m, model, ids, rows)
    save(folder, "hidden-crops", hidden)
    save(folder, "logits-crops", logits[-N_LOGITS:])


def make(name, m, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tower = tower_weights(m)
    files.save_config(folder, config(m))
    save_file({n: w.contiguous() for n, w in stored(m, tower).items()}, folder / "model.safetensors",
              metadata={"format": "pt"})
    s = m.text
    (folder / "tokenizer.model").write_bytes(tokenizer.sentencepiece_model(*tokenizer.pieces(s.vocab_size, s.special)))
    processor = image_processor(m)
    if m.is_gemma3:
        files.save_json(folder / "preprocessor_config.json", processor)
        files.save_gguf(s, folder / "model.gguf")
    else:
        files.save_json(folder / "processor_config.json", {"image_processor": processor, "image_seq_length": BUDGET})
    save_mmproj(m, tower, folder / "mmproj.gguf", gguf.GGMLQuantizationType.F16)
    for kind in m.quantized:
        save_mmproj(m, tower, folder / f"mmproj-{kind}.gguf", gguf.GGMLQuantizationType[kind.upper()])
    for i, size in enumerate(m.sizes):
        Image.fromarray(picture(s.seed + i, *size)).save(folder / f"image-{i + 1}.png", optimize=True)
    model = load(m, folder)
    values, positions = pixels(m, folder)
    rows = rows_of(m, model, values, positions)
    save(folder, "pixels", patches(values, positions, 0)[0])
    save(folder, "rows", torch.cat(rows))
    for suffix, ids, seen in zip(("", "-2"), prompts(m, [len(r) for r in rows]), (rows[:1], rows)):
        (folder / f"tokens{suffix}.txt").write_text(",".join(map(str, ids)) + "\n")
        logits, hidden = run(m, model, ids, seen)
        save(folder, f"logits{suffix}", logits)
        save(folder, f"hidden{suffix}", hidden)
    save_perplexities(m, model, ids, rows, folder)
    with rounded_cache(model):
        save(folder, "hidden-2-q8_0", run(m, model, ids, rows)[1])
    for kind in m.quantized:
        path = folder / f"mmproj-{kind}.gguf"
        save(folder, f"rows-{kind}", torch.cat(rows_of_mmproj(m, model, path, values, positions)))
    if m.is_gemma3:
        save_crops(m, model, folder)
    for f in folder.iterdir():
        f.chmod(0o644)      # safetensors makes its files private
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{name}: {size / 1024:.0f} KiB, {[len(r) for r in rows]} rows of rms "
          f"{torch.cat(rows).pow(2).mean().sqrt():.1f}, logits {float(logits.min()):.1f} .. {float(logits.max()):.1f}, "
          f"{len(np.unique(logits.argmax(-1)))} different winners in {len(ids)} rows")


def save(folder, name, t):
    t.numpy().astype("<f4").tofile(folder / f"{name}.f32")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("names", nargs="*", help="models, all by default")
    p.add_argument("--out", type=pathlib.Path, default=HERE)
    a = p.parse_args()
    transformers.logging.set_verbosity_error()
    for name in a.names or MODELS:
        make(name, MODELS[name], a.out / name)


if __name__ == "__main__":
    sys.exit(main())
