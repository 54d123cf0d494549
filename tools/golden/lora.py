#!/usr/bin/env python3
"""Makes tests/golden/lora: random LoRA adapters to models of tests/golden, and the logits that transformers and PEFT
compute with them.

    python3 -m venv --system-site-packages venv && venv/bin/pip install --no-deps peft accelerate
    venv/bin/python tools/golden/lora.py [NAME...]

The models themselves are read in build/golden, where a build puts them.

A folder has PEFT directories `first` (all matrices of the layers, with other ranks and factors of some modules) and
`second` (some of them, alpha / sqrt(r)), the same adapters as GGUF files, tokens.txt, and logits of float64 weights and
activations: of each adapter alone, and of `first` with 0.75 of its scale beside `second` with -0.5.
"""
import json
import pathlib
import shutil
import sys

import gguf
import numpy as np
import peft
import torch
import transformers
from safetensors.torch import load_file, save_file

import weights
from assemble import BUILT

HERE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
N_TOKENS = 40
SPLIT = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
FUSED = ("qkv_proj", "o_proj", "gate_up_proj", "down_proj")
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")     # beside experts
RECURRENCE = ("in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a", "out_proj")
# name: (folder of the base model, GGUF architecture, modules, whether GGUF orders q and k for rotation of neighbours)
MODELS = {
    "llama": ("llama", "llama", SPLIT, True),
    "gemma3": ("gemma3", "gemma3", SPLIT, False),
    "granite": ("dense/granite", "granite", SPLIT, True),
    "phi3": ("dense/phi3", "phi3", FUSED, False),
    "phi3-partial": ("dense/phi3-partial", "phi3", FUSED, False),
    "smollm3": ("dense/smollm3", "smollm3", SPLIT, True),
    "gemma4": ("gemma4-small", "gemma4", SPLIT, False),
    "gpt-oss": ("dense/gpt-oss", "gpt-oss", ATTENTION, False),
    "muse-glimmer": ("dense/muse-glimmer", "muse-glimmer", SPLIT, True),     # attention's gate is a gate_proj, too
    "qwen35": ("dense/qwen35", "qwen35", SPLIT + RECURRENCE, False),
}
NAMED_AS = {"muse-glimmer": "afmoe"}     # which gguf-py knows, and whose matrices have these names
BOTH = {"first": 0.75, "second": -0.5}


def swap_pairs(array, head_dim):
    rows = array.reshape(-1, 2, head_dim // 2, *array.shape[1:])
    return np.ascontiguousarray(rows.swapaxes(1, 2).reshape(array.shape))


def save_gguf(path, arch, tensors, scales, interleaved, config):
    """One alpha for all: what is left of a module's own factor goes into its B."""
    w = gguf.GGUFWriter(path, arch)
    config = config.get_text_config()
    alpha = 8.0
    w.add_type("adapter")
    w.add_string("adapter.type", "lora")
    w.add_float32("adapter.lora.alpha", alpha)
    known = {v: k for k, v in gguf.MODEL_ARCH_NAMES.items()}[NAMED_AS.get(arch, arch)]
    names = gguf.get_tensor_name_map(known, config.num_hidden_layers)
    for name, tensor in tensors.items():
        module, half = name.removeprefix("base_model.model.").removesuffix(".weight").rsplit(".", 1)
        array = tensor.double().numpy()
        if half == "lora_B":
            array = array * (scales[module] * array.shape[1] / alpha)
            if interleaved and module.split(".")[-1] in ("q_proj", "k_proj"):
                array = swap_pairs(array, array.shape[0] // (config.num_attention_heads if "q_proj" in module
                                                             else config.num_key_value_heads))
        if ".linear_attn." in module:
            array = weights.tiled_half(array, module.rsplit(".", 1)[1], half.lower(), config)
        module = module.replace(".language_model.", ".")
        base = names.get_name(module + ".weight", try_suffixes=(".weight",))
        w.add_tensor(base + "." + half.lower(), np.ascontiguousarray(array.astype(np.float32)))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def make(name):
    base, arch, modules, interleaved = MODELS[name]
    folder = HERE / "lora" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    ids = [int(i) for i in (HERE / base / "tokens.txt").read_text().replace(",", " ").split()][:N_TOKENS]
    (folder / "tokens.txt").write_text(",".join(map(str, ids)) + "\n")

    said = json.loads((HERE / base / "config.json").read_text())
    architecture, excluded = said["architectures"][0], ".*vision_tower.*" if "vision_config" in said else None
    experts = {"experts_implementation": "eager"} if "num_local_experts" in said else {}

    def load():
        return getattr(transformers, architecture).from_pretrained(BUILT / base, dtype=torch.float64,
                                                                   attn_implementation="eager", **experts).eval()

    def logits(model):
        with torch.no_grad():
            return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].double()

    merged, plain = load(), logits(load())
    for adapter, rules in weights.ADAPTERS.items():
        targets = modules if adapter == "first" else modules[0::2]
        config = peft.LoraConfig(task_type="CAUSAL_LM", target_modules=sorted(targets),
                                 exclude_modules=excluded, **rules)
        model = peft.get_peft_model(load(), config)
        model.save_pretrained(folder / adapter)
        (folder / adapter / "README.md").unlink(missing_ok=True)
        config_path = folder / adapter / "adapter_config.json"
        said = json.loads(config_path.read_text()) | {"base_model_name_or_path": base,
                                                          "target_modules": sorted(targets)}
        config_path.write_text(json.dumps(said, indent=1, sort_keys=True) + "\n")
        path = folder / adapter / "adapter_model.safetensors"
        dtype = torch.bfloat16 if adapter == "first" else torch.float32
        tensors = {n: torch.from_numpy(weights.lora(name, adapter, n, tuple(t.shape))).to(dtype).contiguous()
                   for n, t in load_file(path).items()}
        save_file(tensors, path, metadata={"format": "pt"})

        model = peft.PeftModel.from_pretrained(load(), folder / adapter).double().eval()
        scales = {n.removeprefix("base_model.model."): m.scaling["default"]
                  for n, m in model.named_modules() if isinstance(m, peft.tuners.lora.LoraLayer)}
        assert all(scale == weights.lora_scale(adapter, n) for n, scale in scales.items())
        save_gguf(folder / f"{adapter}.gguf", arch, tensors, scales, interleaved, model.config)
        alone = logits(model)
        alone.numpy().astype("<f4").tofile(folder / f"{adapter}.f32")
        own = load()
        for module, scale in scales.items():
            a, b = (tensors[f"base_model.model.{module}.lora_{x}.weight"].double() for x in "AB")
            own.get_submodule(module).weight.data += scale * (b @ a)
            merged.get_submodule(module).weight.data += BOTH[adapter] * scale * (b @ a)
        error = float((logits(own) - alone).norm() / alone.norm())
        assert error < 1e-12, error
        print(f"{name}: {adapter}: changes logits by {float((alone - plain).norm() / plain.norm()):.2f}, by hand "
              f"{error:.1e}")
    logits(merged).numpy().astype("<f4").tofile(folder / "both.f32")
    for f in folder.rglob("*"):
        f.chmod(0o755 if f.is_dir() else 0o644)
    print(f"{name}: {sum(f.stat().st_size for f in folder.rglob('*')) / 1024:.0f} KiB")


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    for name in sys.argv[1:] or MODELS:
        make(name)
