"""Runs transformers' own Gemma code over a golden model's files: the oracle. Eager attention, float64 weights and
activations; transformers itself computes RMSNorm, RoPE angles and the softmax in float32 (check.py measures what that
changes: about 1e-7).
"""
import copy

import torch
from transformers import (AutoConfig, Gemma2ForCausalLM, Gemma3ForCausalLM, Gemma3ForConditionalGeneration,
                          GemmaForCausalLM)

import files

CLASSES = {"gemma": GemmaForCausalLM, "gemma2": Gemma2ForCausalLM, "gemma3_text": Gemma3ForCausalLM}


def load(s, folder):
    """The model as transformers reads it from the folder's files, or from its GGUF where that is all there is."""
    if not s.form:
        return build(s, files.own_config(s), files.read_gguf(s, folder / "model.gguf"))
    how = dict(dtype=torch.float64, attn_implementation="eager")
    if s.form == "wrapped":     # the text part of what the vision class read
        config = AutoConfig.from_pretrained(folder)
        config.text_config.vocab_size = s.vocab_size     # rows come from the tensor; transformers would want 262208
        wrapped = Gemma3ForConditionalGeneration.from_pretrained(folder, config=config, **how)
        state = {"model." + n: w for n, w in wrapped.model.language_model.state_dict().items()}
        return build(s, config.text_config, state)
    return CLASSES[s.arch].from_pretrained(folder, **how).eval()


def build(s, config, state):
    config = copy.deepcopy(config)
    config._attn_implementation = "eager"
    model = CLASSES[s.arch](config).double()
    missing, extra = model.load_state_dict(state, strict=False)
    assert set(missing) <= {"lm_head.weight"} and not extra, (missing, extra)
    model.tie_weights()
    return model.eval()


@torch.no_grad()
def run(model, ids):
    """-> logits [n, vocab_size], final-norm hidden states [n, d_model]"""
    seen = []
    hook = model.model.norm.register_forward_hook(lambda module, args, out: seen.append(out[0]))
    logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]
    hook.remove()
    return logits, seen[0]
