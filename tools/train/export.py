"""The model as a GGUF file, with the names, keys and conventions of llama.cpp's gemma2; and back."""
import gguf
import numpy as np
import sentencepiece
import torch
from gguf.quants import dequantize, quantize

import corpus
import model as gemma

Q8_0, F32 = gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.F32

# Our stacks of layers, and their names in GGUF.
LAYER_TENSORS = {
    "attn_norm": "attn_norm", "q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output",
    "post_attention_norm": "post_attention_norm", "ffn_norm": "ffn_norm", "gate": "ffn_gate", "up": "ffn_up",
    "down": "ffn_down", "post_ffw_norm": "post_ffw_norm",
}


def gguf_tensors(model):
    """(name, float32 array) in file order; norms as they are multiplied, with the +1 in."""
    value = lambda p, name: (p.detach() + 1.0 if name.endswith("norm") else p.detach()).float().numpy()
    yield "token_embd.weight", value(model.embedding, "embedding")
    for i in range(model.shape.n_layers):
        for ours, theirs in LAYER_TENSORS.items():
            yield f"blk.{i}.{theirs}.weight", value(getattr(model, ours)[i], ours)
    yield "output_norm.weight", value(model.output_norm, "output_norm")


def piece_type(tokenizer, i):
    kinds = ((tokenizer.is_unknown, gguf.TokenType.UNKNOWN), (tokenizer.is_control, gguf.TokenType.CONTROL),
             (tokenizer.is_byte, gguf.TokenType.BYTE), (tokenizer.is_unused, gguf.TokenType.UNUSED))
    for test, kind in kinds:
        if test(i):
            return kind
    return gguf.TokenType.USER_DEFINED if tokenizer.id_to_piece(i) == "\n" else gguf.TokenType.NORMAL


def add_tokenizer(writer, tokenizer):
    ids = range(tokenizer.vocab_size())
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([tokenizer.id_to_piece(i).encode() for i in ids])
    writer.add_token_scores([tokenizer.get_score(i) for i in ids])
    writer.add_token_types([int(piece_type(tokenizer, i)) for i in ids])
    writer.add_bos_token_id(corpus.BOS)
    writer.add_eos_token_id(corpus.EOS)
    writer.add_pad_token_id(corpus.PAD)
    writer.add_unk_token_id(corpus.UNK)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(False)


def add_shape(writer, shape):
    writer.add_context_length(shape.ctx)
    writer.add_embedding_length(shape.d_model)
    writer.add_block_count(shape.n_layers)
    writer.add_feed_forward_length(shape.ffn_dim)
    writer.add_head_count(shape.n_heads)
    writer.add_head_count_kv(shape.n_kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_layer_norm_rms_eps(gemma.NORM_EPS)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_rope_freq_base(gemma.ROPE_BASE)
    writer.add_sliding_window(shape.window)
    writer.add_attn_logit_softcapping(gemma.ATTENTION_CAP)
    writer.add_final_logit_softcapping(gemma.LOGIT_CAP)


def write(model, tokenizer_path, name, description, license_id, path):
    writer = gguf.GGUFWriter(path, "gemma2")
    writer.add_type(gguf.GGUFType.MODEL)
    writer.add_name(name)
    writer.add_description(description)
    writer.add_license(license_id)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_vocab_size(model.shape.vocab_size)
    add_shape(writer, model.shape)
    add_tokenizer(writer, sentencepiece.SentencePieceProcessor(model_file=tokenizer_path))
    for tensor, data in gguf_tensors(model):
        kind = Q8_0 if data.ndim == 2 else F32
        writer.add_tensor(tensor, quantize(data, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def read(path):
    """The model in a GGUF file that write() made, its matrices dequantised."""
    reader = gguf.GGUFReader(path)
    number = lambda key: int(reader.fields[f"gemma2.{key}"].contents())
    data = {t.name: torch.from_numpy(np.array(dequantize(t.data, t.tensor_type), dtype=np.float32))
            for t in reader.tensors}
    model = gemma.Gemma2(gemma.Shape(
        vocab_size=data["token_embd.weight"].shape[0], d_model=number("embedding_length"),
        n_layers=number("block_count"), n_heads=number("attention.head_count"),
        n_kv_heads=number("attention.head_count_kv"), head_dim=number("attention.key_length"),
        ffn_dim=number("feed_forward_length"), window=number("attention.sliding_window"), ctx=number("context_length")))
    stack = lambda name: torch.stack([data[f"blk.{i}.{name}.weight"] for i in range(model.shape.n_layers)])
    state = {ours: stack(theirs) for ours, theirs in LAYER_TENSORS.items()}
    state |= {"embedding": data["token_embd.weight"], "output_norm": data["output_norm.weight"]}
    model.load_state_dict({k: v - 1.0 if k.endswith("norm") else v for k, v in state.items()})
    return model
