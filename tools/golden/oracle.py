"""Runs transformers' own Gemma code over a golden model's files: the oracle. Eager attention, float64 weights and
activations; transformers itself computes RMSNorm, RoPE angles and the softmax in float32 (check.py measures what that
changes: about 1e-7).
"""
import copy

import torch
import transformers
from safetensors.torch import load_file
from transformers import AutoConfig, Gemma3ForConditionalGeneration

import files
import models


def full_name(s, name):
    """In the state of model_class(s), which may have a head that the file lacks."""
    return "model." + name if s.head == "base" and s.tied == "embed" else models.full_name(s, name)


def model_class(s):
    """A tied base model has the head that its family would give it."""
    name = files.class_name(s)
    return getattr(transformers, name.replace("Model", "ForCausalLM") if s.tied == "embed" else name)


def load(s, folder):
    """The model as transformers reads it from the folder's files, or from its GGUF where that is all there is."""
    if not s.form:
        return build(s, files.own_config(s), files.read_gguf(s, folder / "model.gguf"))
    if s.gemma4 and s.form == "old":     # the text part of the unified class
        state = load_file(folder / "model.safetensors")
        state = {n.replace("language_model.", ""): w.double() for n, w in state.items() if "vision" not in n}
        config = AutoConfig.from_pretrained(folder).text_config
        own = files.own_config(s).to_dict()
        for key in ("per_layer_config", "rope_parameters", "sliding_window", "layer_types", "final_logit_softcapping"):
            assert config.to_dict()[key] == own[key], key
        return build(s, files.own_config(s), state)
    how = dict(dtype=torch.float64, attn_implementation="eager")
    if s.form == "wrapped":     # the text part of what the vision class read
        config = AutoConfig.from_pretrained(folder)
        config.text_config.vocab_size = s.vocab_size     # rows come from the tensor; transformers would want 262208
        wrapped = Gemma3ForConditionalGeneration.from_pretrained(folder, config=config, **how)
        state = {"model." + n: w for n, w in wrapped.model.language_model.state_dict().items()}
        return build(s, config.text_config, state)
    return model_class(s).from_pretrained(folder, **how).eval()


def build(s, config, state):
    config = copy.deepcopy(config)
    config._attn_implementation = "eager"
    model = model_class(s)(config).double()
    missing, extra = model.load_state_dict(state, strict=False)
    extra = [n for n in extra if not models.is_unread(s, n.removeprefix("model."))]
    assert set(missing) <= ({"lm_head.weight"} if s.tied != "no" else set()) and not extra, (missing, extra)
    model.tie_weights()
    return model.eval()


def backbone(model):
    return getattr(model, "model", model)


@torch.no_grad()
def check_padding(model, ids, pad):
    """A text's label scores are those of its last row, by itself and padded in a batch with a longer text."""
    rows, _ = run(model, ids)
    batch = torch.tensor([ids + [pad] * 3, ids[:1] + ids[1:4] + ids[1:]])
    mask = torch.tensor([[1] * len(ids) + [0] * 3, [1] * (len(ids) + 3)])
    scores = model(input_ids=batch, attention_mask=mask, use_cache=False).logits[0]
    assert torch.allclose(rows[-1], scores, rtol=1e-6)


@torch.no_grad()
def run(model, ids):
    """-> logits or label scores [n, outputs], final-norm hidden states [n, d_model]; no logits (None) without a head"""
    seen, scores = [], []
    hooks = [backbone(model).norm.register_forward_hook(lambda module, args, out: seen.append(out[0]))]
    if hasattr(model, "score"):     # a sequence classifier's answer is the row of the last token
        hooks.append(model.score.register_forward_hook(lambda module, args, out: scores.append(out[0])))
    out = model(input_ids=torch.tensor([ids]), use_cache=False)
    for hook in hooks:
        hook.remove()
    if scores and out.logits.ndim == 2:
        assert torch.equal(out.logits[0], scores[0][-1])
    logits = scores[0] if scores else out.logits[0] if hasattr(out, "logits") else None
    return logits, seen[0]
