#!/usr/bin/env python3
"""Makes the folder of golden data that tests read: a copy of tests/golden, and the models' weights.

    python3 tools/golden/assemble.py FOLDER     what a build does
    python3 tools/golden/assemble.py --cut      after another script here has written models to tests/golden

Weights are random numbers that follow from seeds (weights.py, models.py), so the repository does not hold them. Of each
file tests/golden/heads.zip has what is before its tensors, byte for byte, then the few tensors that are not drawn. The
rest is drawn again, and tests/golden/weights.sha256 says what file that must give: the references beside it are of that
file alone. --cut takes apart the files that can be made so; the others stay as they are.

Needs numpy and nothing else, for any build makes this folder.
"""
import hashlib
import json
import pathlib
import re
import sys
import types
import zipfile

try:
    import numpy as np
except ImportError:
    sys.exit("tools/golden/assemble.py: numpy is missing, which draws the weights of the tests' models: install "
             "python3-numpy, or configure with -DPERIDOT_TESTS=OFF")

import formats
import models
import weights

TOP = pathlib.Path(__file__).resolve().parents[2]
SOURCE, BUILT = TOP / "tests" / "golden", TOP / "build" / "golden"
HEADS, SUMS = SOURCE / "heads.zip", SOURCE / "weights.sha256"
Path = pathlib.PurePosixPath    # of a file or folder below SOURCE


# ---- safetensors: what is drawn ----

def own_name(name):
    """In a text model alone."""
    return re.sub(r"^((model|language_model)\.)*", "", name)


def is_of_tower(name):
    return bool(re.match(r"(model\.)?(vision_|multi_modal_projector|embed_vision)", name))


def module_name(folder, name):
    """What transformers calls a tensor of a tower."""
    if folder == "gemma4-unified-vision":
        name = name.replace("embed_vision.", "embed_vision.multimodal_embedder.")
        return name.replace("vision_embedder.", "embed_vision.")
    return name if name.startswith("model.") else "model." + name.replace("vision_model.", "")


def drawn(path, name, shape):
    """-> float array; None: it is not drawn"""
    folder, *below = path.parent.parts
    if folder == "dense":
        return weights.dense(below[0], name, shape)
    if folder == "qwen35-vision":
        return weights.dense(folder, name, shape)
    if folder == "lora":
        return weights.lora(*below, name, shape)
    if folder in weights.QWEN_SEEDS:
        return weights.qwen(folder, name, shape)
    if folder in weights.DRAFTER_SEEDS:
        return None if name.startswith("masked_embedding.") else weights.drafter(folder, name, shape)
    if folder in weights.EMBEDDING_SEEDS:
        own = f"{below[0][0]}.linear" if below else own_name(name)
        return None if is_of_tower(name) else weights.embedding(folder, own, shape)
    if is_of_tower(name):
        s = models.VISION.get(folder)
        return weights.tower(s.seed, module_name(folder, name), shape) if s else None
    s, own = (models.SHAPES | models.VISION).get(folder), own_name(name)
    return s and models.draw(s, "embed_tokens.weight" if own == "lm_head.weight" and s.tied != "no" else own, shape)


# ---- GGUF: the same under other names, and as llama.cpp has it ----

BLOCK = {
    "attn_norm": ("input_layernorm", "operator_norm"), "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_qkv": "self_attn.qkv_proj", "attn_gate": "self_attn.gate_proj",
    "attn_q_norm": ("self_attn.q_norm", "self_attn.q_layernorm"),
    "attn_k_norm": ("self_attn.k_norm", "self_attn.k_layernorm"), "attn_sinks": "self_attn.sinks",
    "attn_output": ("self_attn.o_proj", "self_attn.out_proj"), "shortconv.in_proj": "conv.in_proj",
    "shortconv.conv": "conv.conv", "shortconv.out_proj": "conv.out_proj",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": ("pre_feedforward_layernorm", "post_attention_layernorm", "ffn_norm"),
    "ffn_gate": ("mlp.gate_proj", "feed_forward.w1"), "ffn_up": ("mlp.up_proj", "mlp.gate_up_proj", "feed_forward.w3"),
    "ffn_down": ("mlp.down_proj", "feed_forward.w2"),
    "post_ffw_norm": "post_feedforward_layernorm", "pre_ffw_norm_2": "pre_feedforward_layernorm_2",
    "post_ffw_norm_1": "post_feedforward_layernorm_1", "post_ffw_norm_2": "post_feedforward_layernorm_2",
    "ffn_gate_inp.scale": "router.scale", "ffn_down_exps.scale": "router.per_expert_scale",
    "ffn_gate_inp": ("router.proj", "mlp.gate", "block_sparse_moe.gate", "block_sparse_moe.router.layer",
                     "mlp.router", "feed_forward.gate"),
    "exp_probs_b": "feed_forward.expert",
    "ffn_gate_up_exps": "experts.gate_up_proj",
    "ffn_gate_exps": ("mlp.experts.gate_proj", "block_sparse_moe.experts.w1", "feed_forward.experts.w1"),
    "ffn_up_exps": ("mlp.experts.up_proj", "block_sparse_moe.experts.w3", "feed_forward.experts.w3"),
    "ffn_down_exps": ("experts.down_proj", "mlp.experts.down_proj", "block_sparse_moe.experts.w2",
                      "block_sparse_moe.output_linear", "feed_forward.experts.w2"),
    "ffn_gate_inp_shexp": "mlp.shared_expert_gate", "ffn_gate_shexp": "mlp.shared_expert.gate_proj",
    "ffn_up_shexp": "mlp.shared_expert.up_proj", "ffn_down_shexp": "mlp.shared_expert.down_proj",
    "layer_output_scale": "layer_scalar", "inp_gate": "per_layer_input_gate", "proj": "per_layer_projection",
    "post_norm": "post_per_layer_input_norm"}
RECURRENCE = {
    "attn_qkv": "in_proj_qkv", "attn_gate": "in_proj_z", "ssm_beta": "in_proj_b", "ssm_alpha": "in_proj_a",
    "ssm_in": "in_proj_qkvz", "ssm_ba": "in_proj_ba", "ssm_conv1d": "conv1d", "ssm_dt": "dt_bias",
    "ssm_a": "A_log", "ssm_norm": "norm", "ssm_out": "out_proj"}
MAMBA = {n: RECURRENCE[n] for n in RECURRENCE if n.startswith("ssm_")} | {"ssm_in": "in_proj", "ssm_d": "D"}
WHOLE = {
    "token_embd": "embed_tokens", "output_norm": "norm", "token_embd_norm": "embedding_norm",
    "output": ("lm_head", "embedding_projection"),
    "per_layer_token_embd": "embed_tokens_per_layer", "per_layer_model_proj": "per_layer_model_projection",
    "per_layer_proj_norm": "per_layer_projection_norm", "nextn.pre_projection": "pre_projection",
    "nextn.post_projection": "post_projection", "dense_2": "2_Dense", "dense_3": "3_Dense"}
TOWER_BLOCK = {
    "ln1": ("layer_norm1", "input_layernorm"), "ln2": ("layer_norm2", "pre_feedforward_layernorm"),
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "attn_out": ("self_attn.out_proj", "self_attn.o_proj"), "attn_post_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": ("mlp.fc1", "mlp.up_proj"), "ffn_down": ("mlp.fc2", "mlp.down_proj"),
    "ffn_post_norm": "post_feedforward_layernorm"}
TOWER_WHOLE = {
    "v.patch_embd": ("patch_embedding", "input_proj", "patch_dense"), "v.patch_norm.1": "patch_ln1",
    "v.patch_norm.2": "patch_ln2", "v.patch_norm.3": "pos_norm", "v.post_ln": "post_layernorm",
    "v.position_embd": ("position_embedding", "position_embedding_table", "pos_embedding"),
    "v.std_bias": "std_bias", "v.std_scale": "std_scale", "mm.soft_emb_norm": "mm_soft_emb_norm",
    "mm.input_projection": ("mm_input_projection_weight", "embedding_projection")}
# GGUF holds the factor itself
PLUS_ONE = ("gemma", "gemma2", "gemma3", "gemma-embedding", "qwen35", "qwen35moe", "qwen3next")
# rotated: 2i, 2i + 1
NEIGHBOURS = ("granite", "granitehybrid", "granitemoe", "llama", "mistral3", "muse-glimmer", "smollm3")
END = r"\.weight|\.bias|\.(?:in|out)put_m(?:in|ax)|\.weight\.lora_[ab]"


def hf_names(name):
    """What a tensor of a GGUF file may be called, without what is around it."""
    base, end = re.fullmatch(rf"(.*?)({END})?", name).groups("")
    end = re.sub(r"\.weight\.lora_(.)", lambda m: f".lora_{m[1].upper()}.weight", end)
    layer = re.fullmatch(r"(?:v\.)?blk\.(\d+)\.(.*)", base)
    table = (TOWER_BLOCK if layer else TOWER_WHOLE) if is_gguf_tower(name) else BLOCK if layer else WHOLE
    if layer and layer[2] in RECURRENCE:
        yield from (f"layers.{layer[1]}.linear_attn.{RECURRENCE[layer[2]]}{e}" for e in (end, ".weight", ""))
    if layer and layer[2] in MAMBA:
        yield from (f"layers.{layer[1]}.mamba.{MAMBA[layer[2]]}{e}" for e in (end, ""))
    own = table.get(layer[2] if layer else base, ())
    for word in (own,) if isinstance(own, str) else own:
        word = f"layers.{layer[1]}.{word}" if layer else word
        yield from (word + end, word)


def is_gguf_tower(name):
    return name.startswith(("v.", "mm."))


def plain(name):
    """Without the modules around it."""
    return re.sub(r"\b(base_model|model|language_model|ple|ple_block|vision_tower|vision_model|encoder|embeddings|"
                  r"patch_embedder|multi_modal_projector|embed_vision|vision_embedder|linear)\.", "", name)


def head_dim(folder, keys):
    """Of a model, or of the one that an adapter is to."""
    if "adapter.type" not in keys:
        return keys[keys["general.architecture"] + ".attention.key_length"]
    base = json.loads((SOURCE / folder / "adapter_config.json").read_text())["base_model_name_or_path"]
    c = json.loads((SOURCE / base / "config.json").read_text())
    c = c.get("text_config", c)
    return c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]


def config_of(folder):
    return types.SimpleNamespace(**json.loads((SOURCE / folder / "config.json").read_text()))


def neighbours(array, n):
    """Rows of heads, whose two halves transformers rotates together."""
    return array.reshape(-1, 2, n // 2, *array.shape[1:]).swapaxes(1, 2).reshape(array.shape)


def channels_first(array):
    """Of patches of Gemma 4: transformers has channels innermost."""
    return array.reshape(*array.shape[:-1], -1, 3).swapaxes(-1, -2).reshape(array.shape)


def gguf_text_array(folder, keys, name, array):
    arch = keys["general.architecture"]
    part = RECURRENCE.get(re.sub(r"^blk\.\d+\.|\.weight$|\.bias$", "", name)) \
        if arch.startswith(("qwen35", "qwen3next")) else None
    if part:
        array = array.squeeze() if part == "conv1d" else array
        array = -np.exp(array.astype(np.float64)).astype(np.float32) if part == "A_log" else array
        return array if part == "norm" or arch == "qwen3next" else weights.tiled(array, part, config_of(folder))
    if arch == "granitehybrid" and ".ssm_" in name:
        array = -np.exp(array.astype(np.float64)).astype(np.float32) if name.endswith("ssm_a") else array
        return array.reshape(-1, 1) if name.endswith(("ssm_a", "ssm_d")) else array
    if "shortconv.conv" in name:
        return array.squeeze(1)
    if name.endswith("norm.weight") and (arch in PLUS_ONE or arch == "muse-glimmer" and name.startswith("blk.")):
        return array + np.float32(1)
    if name.endswith(".lora_b"):        # one alpha for all: what is left of a module's own factor is in its B
        module = next(hf_names(name)).removesuffix(".lora_B.weight")
        array = array.astype(np.float64) * (weights.lora_scale(folder.name, module) * array.shape[1] / 8.0)
    part = RECURRENCE.get(re.sub(r"^blk\.\d+\.|\.weight\.lora_[ab]$", "", name)) if arch == "qwen35" else None
    if part:
        config = config_of(pathlib.Path("dense", folder.parent.name))
        return weights.tiled_half(array, part, name.rsplit(".", 1)[1], config)
    if re.search(r"attn_[qk]\.", name) and not name.endswith("lora_a") and arch in NEIGHBOURS:
        return neighbours(array, head_dim(folder, keys))
    return array


def gguf_tower_array(folder, name, array):
    if name.startswith("mm.soft_emb_norm"):
        return array + np.float32(1)
    if folder.name != "gemma3-vision" and name.startswith(("v.patch_embd.weight", "v.patch_norm.1")):
        return channels_first(array)
    if folder.name == "gemma4-unified-vision" and name.startswith("v.position_embd"):
        return array.transpose(1, 0, 2)         # a table for x and one for y
    return array


def expert_array(tensors, key):
    """Of experts that safetensors have apart, or of whose gates and what these multiply they have one tensor."""
    before, experts, after = key.partition(".experts.")
    apart = []
    while experts and (False, f"{before}.experts.{len(apart)}.{after}") in tensors:
        apart.append(tensors[False, f"{before}.experts.{len(apart)}.{after}"])
    both = tensors.get((False, f"{before}.input_linear.weight"))
    if both is not None and after in ("w1.weight", "w3.weight"):
        return np.split(both, 2, axis=1)[after == "w3.weight"]
    return np.stack(apart) if apart else None


def gpt_oss_array(tensors, name):
    """Experts of safetensors whose rows of gate and up are in turn, and whose matrices are turned over."""
    layer, what, end = re.fullmatch(r"blk\.(\d+)\.ffn_(gate|up|down)_exps\.(weight|bias)", name).groups()
    key = f"layers.{layer}.mlp.experts." + ("down_proj" if what == "down" else "gate_up_proj")
    if end == "weight" and (False, key + "_blocks") in tensors:
        array = formats.mxfp4(*(tensors[False, key + part].astype(np.uint8) for part in ("_blocks", "_scales")))
    else:
        array = tensors[False, key + "_bias"] if end == "bias" else tensors[False, key].swapaxes(1, 2)
    return array if what == "down" else array[:, what == "up"::2]


class Files:
    """Makes files from what is stored of each: what is before its tensors, and those tensors that are not drawn."""

    def __init__(self, stored):
        self.stored = stored        # path below tests/golden -> bytes
        self.folders = {}

    def tensors_of(self, folder):
        """(whether of a tower, plain name) -> float32 array, as the folder's safetensors have it."""
        if folder not in self.folders:
            out = {}
            for path in (p for p in self.stored if p.suffix == ".safetensors" and p.is_relative_to(folder)):
                for name, kind, shape, _ in formats.read_safetensors(self.stored[path])[1]:
                    array = drawn(path, name, shape)
                    if array is not None:
                        key = ".".join((*path.parent.relative_to(folder).parts, plain(name)))
                        out[is_of_tower(name), key] = formats.rounded(kind, array)
            if not out and folder.name in models.SHAPES:
                out = {(False, name): array for name, array in models.weights(models.SHAPES[folder.name]).items()}
            self.folders[folder] = out
        return self.folders[folder]

    def gguf_tensor(self, path, keys, name):
        folder = path.with_suffix("") if path.parts[0] == "lora" else path.parent
        tensors = self.tensors_of(folder)
        if keys.get("general.architecture") == "gpt-oss" and "_exps." in name:
            return gpt_oss_array(tensors, name)
        both = re.sub(r"blk\.(\d+)\.attn_(qkv|gate)\.", r"layers.\1.linear_attn.in_proj_qkvz.", name)
        both = tensors.get((False, both))
        if both is not None:
            return weights.parted(both, config_of(folder))["attn_gate" in name]
        for key in hf_names(name):
            array = tensors.get((is_gguf_tower(name), key))
            array = expert_array(tensors, key) if array is None else array
            if array is not None:
                return gguf_tower_array(folder, name, array) if is_gguf_tower(name) else \
                    gguf_text_array(folder, keys, name, array)
        if ".attn_qkv." in name and not is_gguf_tower(name):   # fused in the GGUF file alone
            return np.concatenate([self.gguf_tensor(path, keys, name.replace("qkv", x)) for x in "qkv"])
        return None

    def parts(self, path):
        """Where the tensors begin; of each where it begins, its size, its type, and its array or None."""
        data = self.stored[path]
        if path.suffix == ".safetensors":
            begin, tensors = formats.read_safetensors(data)
            return begin, [(at, formats.size_of(kind, shape), kind, drawn(path, name, shape))
                           for name, kind, shape, at in tensors]
        g = formats.Gguf(data)
        return g.begin, [(at, formats.size_of(kind, shape), kind, self.gguf_tensor(path, g.keys, name))
                         for name, kind, shape, at in g.tensors]

    def make(self, path):
        begin, tensors = self.parts(path)
        out, rest = bytearray(self.stored[path][:begin]), self.stored[path][begin:]
        for at, size, kind, array in tensors:
            out += bytes(at - len(out))
            if array is None:
                out, rest = out + rest[:size], rest[size:]
            else:
                out += np.ascontiguousarray(formats.ENCODE[kind](array)).tobytes()
        return bytes(out + bytes(-len(out) % 32 if path.suffix == ".gguf" else 0))

    def cut(self, path):
        """Leaves of a whole file what is to be stored; false where that is most of it, or a type cannot be written."""
        begin, tensors = self.parts(path)
        data = self.stored[path]
        kept = [data[at:at + size] for at, size, _, array in tensors if array is None and size]
        self.stored[path] = data[:begin] + b"".join(kept)
        return all(size for _, size, _, _ in tensors) and len(self.stored[path]) < len(data) / 2


def read_heads():
    if not HEADS.exists():
        return {}
    with zipfile.ZipFile(HEADS) as z:
        return {Path(name): z.read(name) for name in z.namelist()}


def read_sums():
    lines = SUMS.read_text().splitlines() if SUMS.exists() else []
    return {Path(line[66:]): line[:64] for line in lines}


def assemble(folder):
    files, sums = Files(read_heads()), read_sums()

    def write(path, data):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    whole = {Path(p.relative_to(SOURCE)): p for p in SOURCE.rglob("*") if p.is_file() and p not in (HEADS, SUMS)}
    for path in whole:
        write(path, whole[path].read_bytes())
    for path in sorted(files.stored.keys() - whole.keys()):
        data = files.make(path)
        if hashlib.sha256(data).hexdigest() != sums.get(path):
            sys.exit(f"tests/golden/{path}: tools/golden draws other weights than those that weights.sha256 and the "
                     "references in this folder are of")
        write(path, data)
    seeing(folder / "dense")


# Of Qwen 3.5 as it is published, beside the text model: parts of its vision tower.
BESIDE = {"model.visual.patch_embed.proj.weight": [8, 3, 2, 4, 4], "model.visual.pos_embed.weight": [4, 8],
          "model.visual.blocks.0.attn.qkv.weight": [24, 8], "model.visual.merger.linear_fc2.bias": [32]}


def seeing(dense):
    """Makes of qwen35 a directory with a tower, whose text has the same logits."""
    text, out = dense / "qwen35", dense / "qwen35-seeing"
    out.mkdir(exist_ok=True)
    for name in ("tokens.txt", "logits.f32", "hidden.f32"):
        (out / name).write_bytes((text / name).read_bytes())
    config = json.loads((text / "config.json").read_text())
    vision = {"model_type": "qwen3_5", "depth": 1, "hidden_size": 8, "num_heads": 2, "patch_size": 4,
              "out_hidden_size": 32, "spatial_merge_size": 2, "temporal_patch_size": 2}
    wrapped = {"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5", "text_config": config,
               "vision_config": vision, "image_token_id": 250, "vision_start_token_id": 251,
               "vision_end_token_id": 252, "tie_word_embeddings": config["tie_word_embeddings"]}
    (out / "config.json").write_text(json.dumps(wrapped, indent=1) + "\n")
    data = (text / "model.safetensors").read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    tensors = {re.sub(r"^model\.", "model.language_model.", name): tensor
               for name, tensor in json.loads(data[8:begin]).items()}
    end = len(data) - begin
    for name, shape in BESIDE.items():
        tensors[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + 2 * int(np.prod(shape))]}
        end = tensors[name]["data_offsets"][1]
    head = json.dumps(tensors).encode()
    head += b" " * (-len(head) % 8)
    data = data[begin:] + bytes(begin + end - len(data))
    (out / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + data)


def cut():
    sums = read_sums()
    files = Files({path: data for path, data in read_heads().items() if (SOURCE / path.parent).is_dir()})
    whole = {Path(p.relative_to(SOURCE)): p.read_bytes() for p in SOURCE.rglob("*")
             if p.suffix in (".safetensors", ".gguf")}
    files.stored |= whole
    for path, data in whole.items():
        if files.cut(path) and files.make(path) == data:
            sums[path] = hashlib.sha256(data).hexdigest()
        else:
            print(f"{path}: stays")
            del files.stored[path]
    SUMS.write_text("".join(f"{sums[path]}  {path}\n" for path in sorted(files.stored)))
    with zipfile.ZipFile(HEADS, "w") as z:
        for path in sorted(files.stored):
            z.writestr(zipfile.ZipInfo(str(path)), files.stored[path], zipfile.ZIP_DEFLATED, 9)
    for path in whole.keys() & files.stored.keys():
        (SOURCE / path).unlink()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    cut() if sys.argv[1] == "--cut" else assemble(pathlib.Path(sys.argv[1]))
