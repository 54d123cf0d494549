"""What the trained model is worth: bits per byte, samples, and a comparison with transformers' Gemma 2."""
import math
import os

import torch
import torch.nn.functional as F

import corpus
import model as gemma


def scored_windows(document, ctx, stride):
    """Cuts a story (bos, text, eos) so that every token after bos is predicted once.

    Yields (inputs, targets, first): targets[first:] are scored. After the first window each one scores `stride` new
    tokens, and begins with bos in the place of its oldest token.
    """
    n, scored = len(document) - 1, 0
    while scored < n:
        end = min(n, ctx if scored == 0 else scored + stride)
        start = max(0, end - ctx)
        inputs = document[start:end].copy()
        inputs[0] = corpus.BOS
        yield inputs, document[start + 1:end + 1], scored - start
        scored = end


@torch.no_grad()
def total_bits(model, windows, batch=16):
    """Sum of -log2 p over the scored targets, in float32 (summed in float64), and their number."""
    windows = sorted(windows, key=lambda w: len(w[0]))
    bits, count = 0.0, 0
    for at in range(0, len(windows), batch):
        part = windows[at:at + batch]
        longest = len(part[-1][0])
        inputs = torch.full((len(part), longest), corpus.PAD)
        targets = torch.full((len(part), longest), -1)
        for row, (x, y, first) in enumerate(part):
            inputs[row, :len(x)] = torch.from_numpy(x)
            targets[row, first:len(y)] = torch.from_numpy(y[first:])
        kept = targets >= 0
        logits = model.logits(model(inputs)[kept])
        bits += F.cross_entropy(logits.double(), targets[kept], reduction="sum").item() / math.log(2.0)
        count += int(kept.sum())
    return bits, count


def bits_per_byte(model, tokenizer, path, stride, max_documents=None):
    """(bits per byte, tokens scored, bytes): every byte counts, the end of a story pays for its blank line."""
    documents = corpus.encode_documents(tokenizer, path)[:max_documents]
    size = os.path.getsize(path)
    if max_documents:
        size = sum(len(d.encode()) + 2 for d in corpus.read_documents(path)[:max_documents])
    bits, count = total_bits(model, [w for d in documents for w in scored_windows(d, model.shape.ctx, stride)])
    return bits / size, count, size


@torch.no_grad()
def sample(model, tokenizer, prompt, n_tokens, temperature, seed):
    """The prompt and what the model adds to it; stops at eos or where the context is full."""
    rng = torch.Generator().manual_seed(seed)
    ids = [corpus.BOS, *tokenizer.encode(prompt)]
    for _ in range(min(n_tokens, model.shape.ctx - len(ids))):
        logits = model.logits(model(torch.tensor([ids]))[0, -1])
        if temperature > 0.0:
            token = int(torch.multinomial(torch.softmax(logits / temperature, -1), 1, generator=rng))
        else:
            token = int(logits.argmax())
        if token == corpus.EOS:
            break
        ids.append(token)
    return tokenizer.decode(ids[1:])


def transformers_model(model):
    """The same weights in Hugging Face's Gemma2ForCausalLM, float32."""
    from transformers import Gemma2Config, Gemma2ForCausalLM
    s = model.shape
    config = Gemma2Config(
        vocab_size=s.vocab_size, hidden_size=s.d_model, intermediate_size=s.ffn_dim, num_hidden_layers=s.n_layers,
        num_attention_heads=s.n_heads, num_key_value_heads=s.n_kv_heads, head_dim=s.head_dim,
        query_pre_attn_scalar=s.head_dim, sliding_window=s.window, max_position_embeddings=s.ctx,
        attn_logit_softcapping=gemma.ATTENTION_CAP, final_logit_softcapping=gemma.LOGIT_CAP,
        rms_norm_eps=gemma.NORM_EPS, hidden_activation="gelu_pytorch_tanh", pad_token_id=corpus.PAD,
        eos_token_id=corpus.EOS, bos_token_id=corpus.BOS, attn_implementation="eager")
    names = {"attn_norm": "input_layernorm", "q": "self_attn.q_proj", "k": "self_attn.k_proj",
             "v": "self_attn.v_proj", "o": "self_attn.o_proj", "post_attention_norm": "post_attention_layernorm",
             "ffn_norm": "pre_feedforward_layernorm", "gate": "mlp.gate_proj",
             "up": "mlp.up_proj", "down": "mlp.down_proj", "post_ffw_norm": "post_feedforward_layernorm"}
    state = {f"model.layers.{i}.{theirs}.weight": getattr(model, ours)[i].detach()
             for ours, theirs in names.items() for i in range(s.n_layers)}
    state |= {"model.embed_tokens.weight": model.embedding.detach(), "lm_head.weight": model.embedding.detach(),
              "model.norm.weight": model.output_norm.detach()}
    other = Gemma2ForCausalLM(config).float().eval()
    other.load_state_dict(state)
    return other


@torch.no_grad()
def compare_with_transformers(model, tokenizer, path):
    """(relative L2 error, largest difference) of our logits against transformers' on the text's first full context."""
    document = next(d for d in corpus.encode_documents(tokenizer, path) if len(d) >= model.shape.ctx)
    ids = torch.from_numpy(document[:model.shape.ctx])[None]
    ours = model.logits(model(ids)).double()
    theirs = transformers_model(model)(ids, use_cache=False).logits.double()
    return ((ours - theirs).norm() / theirs.norm()).item(), (ours - theirs).abs().max().item()
